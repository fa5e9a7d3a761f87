// Package chaos breaks the node pipeline at every single step and checks that nothing is lost and nothing
// is left.
//
//	go test ./tests/chaos              the short form: a sample of the points, every kind of call among them
//	go test ./tests/chaos -full        all points with all faults
//	go test ./tests/chaos -run 'TestChaos/ext4' -full -only 17   one point of some scenarios, with all faults
//
// A scenario is one operation of node.Service in one situation: the first stage of an image as xfs, the
// unstage of a raw block device. It runs in a process of its own, with a mount namespace and a tmpfs of its
// own, on real loop devices. That process, the worker, starts the operation again and again in a victim:
// itself, executed anew and traced (tracer_test.go). Every system call by which the victim touches the world
// outside is a numbered point, and so are the start, the end and some writes of every command that it runs.
// At each point, one run each:
//
//   - the victim is killed, with its commands or without them, or the command alone;
//   - the call fails with EIO, ENOSPC, EBUSY, EINTR and ETIMEDOUT without being made;
//   - the call hangs until the request's time is over, where it is one that can hang.
//
// Then the worker does what a kubelet would: it makes a fresh Service on the same state and repeats
// the operation until it succeeds, or gives up and takes the volume down; and then leads the volume through
// the rest of its life. What is mounted, attached, recorded and readable is compared with an undisturbed run
// at each step, and at the end nothing may be left.
package chaos
