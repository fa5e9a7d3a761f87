package hostile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHandlesReachBeyondDirectories demonstrates a warning in docs/guides/install.md: a pod with CAP_DAC_READ_SEARCH
// and a volume of a directory pool can read any file of the pool's filesystem by its handle, anywhere in it. From a
// volume of an image pool it can reach only that volume's files.
func TestHandlesReachBeyondDirectories(t *testing.T) {
	for pool, reached := range map[string]bool{"directory": true, "image": false} {
		t.Run(pool, func(t *testing.T) {
			root := t.TempDir()
			secret := filepath.Join(root, "secret")
			if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, "local", root)
			target := w.target
			if pool == "image" {
				target = w.image(t)
			}
			err := opensByHandle(target, secret)
			if reached && err != nil || !reached && !errors.Is(err, unix.ESTALE) {
				t.Errorf("a file outside of the volume: %v, want it reached: %t", err, reached)
			}
		})
	}
}

// opensByHandle opens a file by its handle, from a directory that only determines the filesystem
// (open_by_handle_at(2)). A pod would guess the handle, which contains little more than the number of the inode; a root
// directory's handle is known.
func opensByHandle(dir, file string) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, file, 0)
	if err != nil {
		return err
	}
	from, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer from.Close()
	fd, err := unix.OpenByHandleAt(int(from.Fd()), handle, unix.O_RDONLY)
	if err != nil {
		return err
	}
	text := make([]byte, len("secret"))
	_, err = unix.Read(fd, text)
	if err == nil && string(text) != "secret" {
		err = errors.New("it is another file")
	}
	return errors.Join(err, unix.Close(fd))
}

// image publishes a volume of an image pool, and removes it at the end of the test.
func (w *world) image(t *testing.T) string {
	t.Helper()
	create := w.create("image")
	create.Parameters = map[string]string{"pool": "image"}
	made, err := w.controller.CreateVolume(t.Context(), create)
	if err != nil {
		t.Fatal(err)
	}
	other := *w
	other.volume, other.volumeContext = made.GetVolume().GetVolumeId(), made.GetVolume().GetVolumeContext()
	other.staging, other.target = w.newStage, w.target+"-image"
	t.Cleanup(func() { other.teardown(t) })
	if _, err := w.node.NodeStageVolume(t.Context(), other.stage()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.node.NodePublishVolume(t.Context(), other.publish()); err != nil {
		t.Fatal(err)
	}
	return other.target
}
