// Package crash kills the driver under load, and checks that no data is lost and nothing is left behind.
//
//	go test -v ./tests/crash                             a dozen kills
//	go test -v ./tests/crash -kills 100                  the long form
//	go test -v ./tests/crash -kills 100 -seed 4711       the plan of an earlier run
//	go test -v ./tests/crash -hasty 0                    kills only: no call is given up early
//
// Eight workers each take one volume after another through its life, as an orchestrator does. Meanwhile the driver's
// process is killed by SIGKILL at random instants, with or without its child processes, and also during its start. A
// worker keeps a model of the expected objects and their content: the driver's acknowledgements must hold after any
// crash. A seed determines the plan of the workers and of the kills; the system call that a kill hits depends on the
// machine.
package crash
