package stall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
)

// alone waits until no other test on the machine has a server or keeps servers away, and keeps both waiting until
// the end of this one.
func alone(t testing.TB) {
	t.Helper()
	t.Cleanup(locked(t, unix.LOCK_EX))
}

// Alone is alone for those who are no tests and have a server for long: they are alone while it may stop, and let
// others have their turn in between. It returns what ends that.
func Alone() (end func(), err error) { return lock(unix.LOCK_EX) }

// Apart keeps servers off the machine until the end of the test: what it does with loop devices asks all of them,
// also one whose file another mount namespace has on a server that hangs. Many tests may do so at a time, and one
// more than once. A test that has a server itself is alone already and must not call it.
func Apart(t testing.TB) {
	t.Helper()
	t.Cleanup(locked(t, unix.LOCK_SH))
}

// WithoutServers is Apart for the time of do, which must be short.
func WithoutServers(t testing.TB, do func()) {
	t.Helper()
	defer locked(t, unix.LOCK_SH)()
	do()
}

// lockPatience bounds the wait for the tests of other packages, which hold the lock for one test each, and leaves
// the package half of its time (the Makefile's -timeout). Only what hangs holds it for so long.
const lockPatience = 10 * time.Minute

// locked takes the lock of servers in one way or the other, and returns what gives it back.
func locked(t testing.TB, how int) (giveBack func()) {
	t.Helper()
	giveBack, err := lock(how)
	must(t, err)
	return giveBack
}

// lock is locked for those who are no tests. The lock goes with the process that has it, however that ends; what the
// process starts does not inherit it.
func lock(how int) (giveBack func(), err error) {
	file, err := lockFile("/dev/fuse", how, lockPatience) // which every server needs, and nobody else locks
	if errors.Is(err, fs.ErrNotExist) && how == unix.LOCK_SH {
		return func() {}, nil // without it there are no servers
	}
	if err != nil {
		return nil, err
	}
	return func() { unlock(file) }, nil
}

// lockFile takes the lock of a file. One that comes too late is given back, or this process would keep others waiting
// with a lock that nobody here knows of.
func lockFile(path string, how int, patience time.Duration) (*os.File, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	file, err := deadline.Do(ctx, deadline.Call{Name: "locking " + path},
		func(context.Context) (*os.File, error) { return flock(path, how) }, unlock)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("a test on this machine has it locked for %s, and /proc/locks says which process: %w", patience, err)
	}
	return file, err
}

// unlock gives the lock back. Somebody who waits for it is woken by that, and would come too late if the next test took
// it at once.
func unlock(lock *os.File) {
	waited := isWaitedFor(lock)
	_ = unix.Flock(int(lock.Fd()), unix.LOCK_UN) // a process that is being started has a copy for an instant
	_ = lock.Close()
	if waited {
		<-time.After(20 * time.Millisecond)
	}
}

// isWaitedFor reports whether somebody waits for the lock of a file (proc_locks(5)).
func isWaitedFor(file *os.File) bool {
	var stat unix.Stat_t
	text, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Fstat(int(file.Fd()), &stat) != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "-> FLOCK") && strings.Contains(line, fmt.Sprintf(":%d ", stat.Ino)) {
			return true
		}
	}
	return false
}

// flock waits for the lock of a file.
func flock(path string, how int) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(file.Fd()), how)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(err, file.Close())
		}
	}
}
