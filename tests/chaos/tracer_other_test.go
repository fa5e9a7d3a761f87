//go:build !amd64

package chaos

import (
	"errors"

	"golang.org/x/sys/unix"
)

// errMachine fails every test on an unsupported architecture.
var errMachine = errors.New("the tracer knows the registers of amd64 only")

type registers struct {
	number uint64
	args   [6]uint64
}

func readCall(int) (registers, error) { return registers{}, errMachine }
func failCall(int, unix.Errno) error  { return errMachine }
func oldCalls() []syscallInfo         { return nil }
