package orchestrator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// places are the paths that an orchestrator assigns to volumes, as the kubelet does. The orchestrator creates and
// removes the staging directory and the target's parent; the driver creates and removes the target.
type places struct{ dir string }

func (p places) staging(name string) string { return filepath.Join(p.dir, "staging", name) }

func (p places) target(name string) string { return filepath.Join(p.dir, "pods", name, "mount") }

// makeDirs creates a directory that every user may traverse.
func makeDirs(dir string) error {
	return os.MkdirAll(dir, 0o755)
}

// removeDir removes a directory that must be empty.
func removeDir(dir string) error {
	if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
