// Command bench measures how fast the driver takes volumes through their whole life, and compares that with the minimum
// time that this machine needs for it.
//
//	go run ./tests/bench -binary bin/stowage
//
// It starts `stowage standalone --backend=local` on a socket. For each pool and each number of volumes in flight, it
// takes volumes through a lifecycle of eight RPCs, as the sidecars and the kubelet do:
//
//	CreateVolume  ValidateVolumeCapabilities  NodeStageVolume  NodePublishVolume
//	NodeGetVolumeStats  NodeUnpublishVolume  NodeUnstageVolume  DeleteVolume
//
// Nothing is written to the volumes. The orchestrator's part, such as the staging directories, is created before the
// clock starts. The load is closed: each volume in flight starts its next RPC when the previous one is answered.
//
// In the same run, alternating with the first phase of each pool, it measures the floor: the system calls, the
// processes and the RPCs that every implementation of such a lifecycle needs. Numbers from two machines, or from two
// minutes on a shared one, are not comparable; the ratio of the measured time to the floor is. No time is asserted.
//
// Finally, one volume that is already formatted is staged and published again and again, alternating with the necessary
// system calls for the loop device, the mount and the bind mount. Both the client's times and the driver's own metric
// are reported.
//
// It needs root, and Linux 5.8 or newer (LOOP_CONFIGURE). It fails if an RPC fails, if the driver does not stop on
// request, or if a mount, a loop device or a file is left behind. In each case it removes its own.
package main
