// Package adversary tries to break a driver, whatever its backend: many clients use volumes through the CSI socket as
// the sidecars and the kubelet do, faults come in the middle of it, and invariants judge all that was answered and is
// there.
//
//	go test ./tests/adversary                                   the short form: always the same schedules
//	go test ./tests/adversary -budget 4m                        as many schedules as this time allows
//	go test ./tests/adversary -schedules 2000 -timeout 4h       so many schedules of each setup, whatever time they take
//	go test ./tests/adversary -setup local-ext4 -profile copies -seed 42 -schedules 1
//	go test ./tests/adversary -profile silent                   the setups with a server: their schedules last 25 seconds
//	make vm-test VMFLAGS=./tests/adversary                      what needs a kernel of its own, in a virtual machine
//
// # Method
//
// A schedule is data: tracks that run side by side, in each of them steps one after the other, and faults that begin
// with a step. It is made from a seed by a profile, which says of what there is more. A setup is a backend with its
// storage and classes, a line in Setups. Its world runs the driver as a child of this process: this test binary again,
// which wires a server as cmd/driver does, so that storage that only stands for the real one is reached too. Real are
// the process, the socket, the loop devices, the mounts and the small filesystems below the pools, and so are a full
// disk, a kill and a stop. Where a disk is a server's (tests/stall), that falls silent in the middle of a request, for
// longer than any call for another disk's volume may take.
//
// Each client knows what it has written, and when: each file, or extent of a raw device, holds one version, whose
// number says all of its bytes. So a copy tells which version of each file is in it, and whether there was an instant
// at which the source had these. At the end of each schedule the faults stop, everything has to complete, what is there
// is held against what was acknowledged, all of it is deleted, and what is left is held against what was there at
// first.
//
// A violation is printed with its seed, and the engine looks for the shortest schedule that still shows it: it leaves
// out tracks, faults and steps, as long as it finds it again.
//
// # What is not covered
//
//   - A clock of the driver's own: a process cannot be given another wall clock than others have (a time namespace
//     shifts the monotonic clocks only, and a static binary takes no library before it). In the guest all clocks leap
//     together.
//   - One block that cannot be read: there is no device-mapper here. A filesystem fails as a whole (FS_IOC_SHUTDOWN).
//   - A server that falls silent while tools have to be started: none can be then (docs/design/007-time.md). And calls
//     that are for no volume that there is: a list, or the making of a volume, may wait for each server.
//   - Power losses are tests/powerloss's, each system call of the node is tests/chaos's, and each call for a volume
//     whose own server is silent is pkg/node's.
package adversary
