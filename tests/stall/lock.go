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

// alone waits until no other test on the machine has a server or keeps servers away, and makes both wait until the end
// of this one.
func alone(t testing.TB) {
	t.Helper()
	t.Cleanup(locked(t, unix.LOCK_EX))
}

// Alone is alone for long-running programs that are no tests: they are alone while their server may stop, and let
// others have their turn in between. The returned function ends that.
func Alone() (end func(), err error) { return lock(unix.LOCK_EX) }

// Apart keeps servers off the machine until the end of the test. The test's work with loop devices asks all of them,
// including one whose file another mount namespace has on a server that hangs. Many tests may do so at a time, and one
// more than once. A test that has a server itself is alone already and must not call it.
func Apart(t testing.TB) {
	t.Helper()
	t.Cleanup(locked(t, unix.LOCK_SH))
}

// WithoutServers is Apart for the duration of do, which must be short.
func WithoutServers(t testing.TB, do func()) {
	t.Helper()
	defer locked(t, unix.LOCK_SH)()
	do()
}

// lockPatience limits the wait for the tests of other packages, which hold the lock for one test each, and leaves the
// package half of its time (the Makefile's -timeout). Only a hanging test holds it for so long.
const lockPatience = 10 * time.Minute

// locked takes the lock of servers in one mode or the other, and returns a function that releases it.
func locked(t testing.TB, how int) (giveBack func()) {
	t.Helper()
	giveBack, err := lock(how)
	must(t, err)
	return giveBack
}

// lock is locked for programs that are no tests. The lock ends with its process in any case; child processes do not
// inherit it.
func lock(how int) (giveBack func(), err error) {
	file, err := lockFile("/dev/fuse", how, lockPatience) // which every server needs, and no other program locks
	if errors.Is(err, fs.ErrNotExist) && how == unix.LOCK_SH {
		return func() {}, nil // without it there are no servers
	}
	if err != nil {
		return nil, err
	}
	return func() { unlock(file) }, nil
}

// lockFile takes the lock of a file. A lock that comes too late is released: otherwise this process would make others
// wait with a lock that it does not know of.
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

// unlock releases the lock. That wakes a waiting process, which would come too late if the next test took the lock at
// once.
func unlock(lock *os.File) {
	waited := isWaitedFor(lock)
	_ = unix.Flock(int(lock.Fd()), unix.LOCK_UN) // a process that is being started has a copy for an instant
	_ = lock.Close()
	if waited {
		<-time.After(20 * time.Millisecond)
	}
}

// isWaitedFor reports whether a process waits for the lock of a file (proc_locks(5)).
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
