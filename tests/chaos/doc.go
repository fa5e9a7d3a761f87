// Package chaos makes the node pipeline fail at every single step and checks that no data is lost and nothing is left
// behind.
//
//	go test ./tests/chaos              the short form: a sample of the points, every kind of call among them
//	go test ./tests/chaos -full        all points with all faults
//	go test ./tests/chaos -run 'TestChaos/ext4' -full -only 17   one point of some scenarios, with all faults
//
// A scenario is one operation of node.Service in one situation, for example the first stage of an image as xfs, or the
// unstage of a raw block device. It runs in a separate process, with its own mount namespace and tmpfs, on real loop
// devices. That process, the worker, runs the operation again and again in a victim: itself, executed anew and traced
// (tracer_test.go). Every system call of the victim that affects the outside world is a numbered point, and so are the
// start, the end and some writes of every command that it runs. At each point, there is one run for each of these
// faults:
//
//   - the victim is killed, with or without its commands, or only the command is killed;
//   - the call fails with EIO, ENOSPC, EBUSY, EINTR and ETIMEDOUT without being made;
//   - the call hangs until the request's time is over, if it is a call that can hang.
//
// Then the worker acts as a kubelet: it creates a new Service on the same state, and repeats the operation until it
// succeeds, or gives up and unpublishes or unstages the volume. Then it takes the volume through the rest of its life.
// At each step, the mounts, loop devices, records and readable data are compared with an undisturbed run. At the end,
// nothing may be left.
package chaos
