// Package adversary tries to break a driver, whatever its backend. Many clients use volumes through the CSI socket as
// the sidecars and the kubelet do, and faults disturb them. Invariants judge all answers and all that exists.
//
//	go test ./tests/adversary                                   the short form: always the same schedules
//	go test ./tests/adversary -budget 4m                        as many schedules as this time allows
//	go test ./tests/adversary -schedules 2000 -timeout 4h       so many schedules of each setup, whatever time they take
//	go test ./tests/adversary -setup local-ext4 -profile copies -seed 42 -schedules 1
//	go test ./tests/adversary -profile silent                   the setups with a server: their schedules last 25 seconds
//	make vm-test VMFLAGS=./tests/adversary                      setups that need their own kernel, in a virtual machine
//
// # Method
//
// A schedule is data: concurrent tracks, each with a sequence of steps, and faults that begin with a step. A profile
// makes it from a seed, and decides which kinds of steps are frequent. A setup is a backend with its storage and
// classes, a line in Setups. Its world runs the driver as a child of this process. That is this test binary again,
// which wires a server as cmd/driver does, so that stand-ins for storage can be used too. The process, the socket, the
// loop devices, the mounts and the small filesystems below the pools are real, and so are a full disk, a kill and a
// stop. A disk that is on a server (tests/stall) falls silent in the middle of a request, for longer than any call for
// another disk's volume may take.
//
// Each client knows what it has written, and when: each file, or extent of a raw device, holds one version, whose
// number determines all of its bytes. So the versions in a copy show whether there was an instant at which the source
// had all of these. At the end of each schedule the faults stop and everything must complete. The existing items are
// compared with the acknowledged ones, all of them are deleted, and the remains are compared with the first state.
//
// A fault counts, and excuses failures, only if it took effect. One that cannot be when it is due, because there is no
// record yet for example, is counted apart. If it is due often and never takes effect, the run fails.
//
// A violation is printed with its seed, and the engine looks for the shortest schedule that still shows it: it leaves
// out tracks, faults and steps, as long as it finds the violation again.
//
// # What is not covered
//
//   - A separate clock of the driver: a process cannot have another wall clock than others (a time namespace only
//     shifts the monotonic clocks, and a static binary preloads no library). In the guest all clocks leap together.
//   - One unreadable block: there is no device-mapper here. A filesystem fails as a whole (FS_IOC_SHUTDOWN).
//   - A server that falls silent while tools must be started, because none can be then (docs/design/007-time.md).
//   - Calls for no existing volume while a server is silent: a list, or the creation of a volume, may wait for each
//     server.
//   - Power losses are covered by tests/powerloss, each system call of the node by tests/chaos, and each call for a
//     volume whose own server is silent by pkg/node.
package adversary
