package orchestrator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// places are the paths that an orchestrator gives volumes, as the kubelet does: it makes and removes the
// staging directory and the target's parent; the target itself is the driver's to make and remove.
type places struct{ dir string }

func (p places) staging(name string) string { return filepath.Join(p.dir, "staging", name) }

func (p places) target(name string) string { return filepath.Join(p.dir, "pods", name, "mount") }

// makeDirs makes a directory that all may pass through.
func makeDirs(dir string) error {
	return os.MkdirAll(dir, 0o755)
}

// removeDir removes a directory that must be empty by now.
func removeDir(dir string) error {
	if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
