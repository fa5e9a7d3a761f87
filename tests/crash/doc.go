// Package crash kills the driver under load and checks that nothing is lost and nothing is left.
//
//	go test -v ./tests/crash                             a dozen kills
//	go test -v ./tests/crash -kills 100                  the long form
//	go test -v ./tests/crash -kills 100 -seed 4711       the plan of an earlier run
//	go test -v ./tests/crash -hasty 0                    kills only: no call is given up early
//
// Eight workers each take one volume after another through its life, as an orchestrator does, while the driver's
// process dies by SIGKILL at random instants, with its child processes or without them, also while it starts.
// A worker keeps a model of what must exist and what must be in it; whatever the driver acknowledged
// must be so after any crash. A seed fixes the plan of the workers and of the kills; which system call a
// kill hits is up to the machine.
package crash
