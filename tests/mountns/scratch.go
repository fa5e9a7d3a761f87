package mountns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/attached"
)

// scratch is a directory for the temporary files of one run. Its lock ends with the process in any case, so the next
// run that takes the directory knows that it may clear it. Its name is short, because the paths of sockets below it may
// only have 107 bytes.
type scratch struct {
	dir  string
	lock *os.File
}

// mostRuns is the maximum number of concurrent runs.
const mostRuns = 1000

// takeScratch takes the first directory that no other run has, and clears it.
func takeScratch() (*scratch, error) {
	for number := range mostRuns {
		s, err := lockScratch(filepath.Join(os.TempDir(), fmt.Sprintf("ns%d", number)))
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		if err := s.sweep(); err != nil {
			return nil, errors.Join(err, s.lock.Close())
		}
		return s, nil
	}
	return nil, fmt.Errorf("%d directories for temporary files are in use", mostRuns)
}

// lockScratch creates a directory, or takes an existing one; nil if another run has it.
func lockScratch(dir string) (*scratch, error) {
	for {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		lock, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil || !ours(lock) {
			return nil, lock.Close()
		}
		if stands(lock) {
			return &scratch{dir, lock}, nil
		}
		_ = lock.Close() // It was removed meanwhile by the run that had it.
	}
}

// ours reports whether the directory belongs to the user who runs the tests: anybody can create one there.
func ours(dir *os.File) bool {
	info, err := dir.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// stands reports whether the open directory still has its name.
func stands(dir *os.File) bool {
	held, err := dir.Stat()
	named, look := os.Lstat(dir.Name())
	return err == nil && look == nil && os.SameFile(held, named)
}

// sweep detaches the loop devices of files in the directory, and empties it.
func (s *scratch) sweep() error {
	if err := freeLoops(s.dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, entry.Name())))
	}
	return err
}

// leave removes the directory with everything in it, and releases it. The next run clears what cannot be removed now.
func (s *scratch) leave() {
	if err := errors.Join(s.sweep(), os.Remove(s.dir), s.lock.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "temporary files are left:", err)
	}
}

// freeLoops detaches the loop devices of files below a directory. A device that is in use, for example by a mount
// namespace that is just ending, frees itself with its last use (LOOP_CLR_FD, loop(4)).
func freeLoops(dir string) (err error) {
	names, _ := filepath.Glob("/sys/block/loop[0-9]*/loop/backing_file") // the pattern is right
	for _, name := range names {
		device := "/dev/" + strings.Split(name, "/")[3]
		if file, read := os.ReadFile(name); read != nil || !isOf(device, strings.TrimSpace(string(file)), dir) {
			continue
		}
		loop, opened := os.Open(device)
		if opened != nil {
			err = errors.Join(err, opened)
			continue
		}
		if cleared := unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_CLR_FD, 0); !errors.Is(cleared, unix.ENXIO) {
			err = errors.Join(err, cleared)
		}
		_ = loop.Close() // It was opened for reading.
	}
	return err
}

// isOf reports whether a loop device is of a file below a directory. If the file's filesystem is mounted nowhere any
// more, its path is relative to that filesystem; then the name by which it was attached counts. Other devices are not
// asked, because they may be of servers that do not answer. So may a device of another mount namespace, and it is not
// waited for either.
func isOf(device, file, dir string) bool {
	if strings.HasPrefix(file, dir+"/") {
		return true
	}
	name, err := attached.Name(device, file)
	return err == nil && strings.HasPrefix(name, dir+"/")
}
