package nfs

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// as runs do as a user who may read and write only what permissions allow, as on a server that maps root to nobody.
func as(t *testing.T, user int, do func() error) error {
	t.Helper()
	runtime.LockOSThread() // Both IDs belong to the thread.
	defer runtime.UnlockOSThread()
	err := unix.Setfsuid(user)
	if err == nil {
		err = do()
	}
	return errors.Join(err, unix.Setfsuid(0))
}

// A directory without write permission for its owner moves, and keeps its mode, wherever it is in the end.
func TestMovedDirectoriesKeepTheirModes(t *testing.T) {
	w := world{TB: t}
	const user = 4242
	for _, mode := range []os.FileMode{0o555, 0o500 | os.ModeSticky, 0o057, 0o770} {
		for name, place := range map[string]os.FileMode{"moved": 0o755, "not moved": 0o555} {
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			volume, target := filepath.Join(from, "volume"), filepath.Join(to, "archived")
			for _, path := range []string{from, to, volume} {
				w.must(errors.Join(os.Mkdir(path, 0o755), os.Chown(path, user, user)))
			}
			w.must(errors.Join(os.Chmod(volume, mode), os.Chmod(to, place)))
			source, err := os.Open(from)
			w.must(err)
			parent, err := os.Open(to)
			w.must(err)
			err = as(t, user, func() error { return moveAway(source, "volume", parent, "archived", true) })
			w.must(errors.Join(source.Close(), parent.Close()))
			left := target
			if place == 0o555 {
				left = volume
			}
			if (err == nil) != (left == target) || err != nil && !errors.Is(err, unix.EACCES) {
				t.Errorf("%s, %s: %v", mode, name, err)
			}
			if info, err := os.Lstat(left); err != nil || info.Mode() != mode|os.ModeDir {
				t.Errorf("%s, %s: it is not there, or has another mode: %v, %v", mode, name, info, err)
			}
		}
	}
}
