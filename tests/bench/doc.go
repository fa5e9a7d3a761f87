// Command bench measures how fast the driver takes volumes through their whole life, beside how fast this
// machine could do it at all.
//
//	go run ./tests/bench -binary bin/stowage
//
// It starts `stowage standalone --backend=local` on a socket and, for each pool and each number of volumes
// in flight, takes volumes through a lifecycle of eight RPCs, as the sidecars and the kubelet do:
//
//	CreateVolume  ValidateVolumeCapabilities  NodeStageVolume  NodePublishVolume
//	NodeGetVolumeStats  NodeUnpublishVolume  NodeUnstageVolume  DeleteVolume
//
// Nothing is written into the volumes. What the orchestrator owes, such as the staging directories, is made
// before the clock starts. The load is closed: each of the volumes in flight starts its next RPC when the
// last one is answered.
//
// In the same run, taking turns with the first phase of each pool, it measures the floor: the system calls,
// the processes and the RPCs that no implementation of such a lifecycle can do without. Numbers of two
// machines, or of two minutes on a shared one, cannot be compared; the ratio of measured to floor can.
// Nothing is asserted by time.
//
// Last, one volume that is formatted already is staged and published again and again, in turns with the loop device,
// the mount and the bind mount that it comes down to: as the client sees it, and as the driver's own metric does.
//
// It needs root, and Linux 5.8 or newer (LOOP_CONFIGURE). It ends with an error when an RPC fails, when
// the driver does not stop when asked to, and when a mount, a loop device or a file is left behind; in each
// case it removes its own.
package main
