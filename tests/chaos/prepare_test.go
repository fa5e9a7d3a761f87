package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// baseline returns the path of the volume's state before each run.
func (w *world) baseline() string { return w.path("baseline") }

// makeBaseline creates the volume with its content. A directory is filled again for each run.
func (w *world) makeBaseline(ctx context.Context) error {
	if err := errors.Join(w.clearNode(), w.makeVolume(ctx)); err != nil || w.form == directory {
		return err
	}
	if w.form == raw {
		if err := writeRaw(w.data()); err != nil {
			return err
		}
	}
	if w.form == image && !w.blank {
		if err := w.fillImage(ctx); err != nil {
			return err
		}
	}
	return copySparse(w.data(), w.baseline())
}

// fillImage formats the volume with a Service without defects, and writes files to it.
func (w *world) fillImage(ctx context.Context) error {
	sound := *w
	sound.plant, sound.group = "", ""
	if err := sound.call(ctx, stage); err != nil {
		return err
	}
	if err := fill(w.stagingPath()); err != nil {
		return err
	}
	if err := sound.call(ctx, unstage); err != nil || !w.dirty {
		return err
	}
	return w.soil(ctx)
}

// soil leaves the filesystem as after a power loss: with the device's content while it is mounted.
func (w *world) soil(ctx context.Context) error {
	sound := *w
	sound.plant, sound.group = "", ""
	if err := sound.call(ctx, stage); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.stagingPath(), "soiled"), []byte("by a loss of power"), 0o600); err != nil {
		return err
	}
	root, err := os.Open(w.stagingPath())
	if err != nil {
		return err
	}
	err = errors.Join(unix.Syncfs(int(root.Fd())), root.Close(), copySparse(w.data(), w.path("soiled")))
	if err = errors.Join(err, sound.call(ctx, unstage)); err != nil {
		return err
	}
	return os.Rename(w.path("soiled"), w.data())
}

// reset restores the world's state before the disturbed operation.
func (w *world) reset(ctx context.Context) error {
	if err := w.clearNode(); err != nil {
		return err
	}
	sound := *w
	sound.plant = ""
	if w.form == directory {
		if err := errors.Join(os.RemoveAll(w.data()), os.MkdirAll(w.data(), 0o755), fill(w.data())); err != nil {
			return err
		}
		return sound.calls(ctx, w.before())
	}
	if err := copySparse(w.baseline(), w.data()); err != nil {
		return err
	}
	if w.torn {
		return errors.Join(sound.call(ctx, stage), unix.Unmount(filepath.Join(w.stagingPath(), "device"), 0))
	}
	if w.op != expand {
		return errors.Join(w.growImage(), sound.calls(ctx, w.before()))
	}
	return errors.Join(sound.calls(ctx, w.before()), w.growImage())
}

// growImage enlarges the volume, as ControllerExpandVolume does.
func (w *world) growImage() error {
	if w.grownMiB == 0 {
		return nil
	}
	return os.Truncate(w.data(), w.grownMiB<<20)
}

// clearNode empties the node's directories.
func (w *world) clearNode() error {
	for _, dir := range []string{"state", "staging", "pods"} {
		if err := errors.Join(os.RemoveAll(w.path(dir)), os.MkdirAll(w.path(dir), 0o755)); err != nil {
			return err
		}
	}
	return nil
}

// content returns the content of a file of the volume.
func content(name string) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("what %s held before\n", name)), 4000)
}

// fileNames returns the files on the volume.
func fileNames() []string {
	return []string{"data", "a/one", "a/two", "b/c/three", "b/c/four"}
}

// fill writes the files to the volume.
func fill(dir string) error {
	for _, name := range fileNames() {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content(name), 0o640)); err != nil {
			return err
		}
	}
	return os.Symlink("/etc/passwd", filepath.Join(dir, "link"))
}

// verify reads and compares the files.
func verify(dir string) error {
	var errs []error
	for _, name := range fileNames() {
		data, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err != nil:
			errs = append(errs, err)
		case !bytes.Equal(data, content(name)):
			errs = append(errs, fmt.Errorf("%s does not hold what was written (%d bytes)", name, len(data)))
		}
	}
	return errors.Join(errs...)
}

// rawAt is the offset of the data on a raw volume.
const rawAt = 1 << 20

func rawData() []byte { return []byte(strings.Repeat("raw data\n", 4096/9+1)[:4096]) }

func writeRaw(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(rawData(), rawAt)
	return errors.Join(err, file.Close())
}

func verifyRaw(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // open for reading only
	got := make([]byte, len(rawData()))
	if _, err := file.ReadAt(got, rawAt); err != nil {
		return err
	}
	if !bytes.Equal(got, rawData()) {
		return fmt.Errorf("%s does not hold what was written", path)
	}
	return nil
}
