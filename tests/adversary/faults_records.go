package adversary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// lost makes a server show a share without the driver's directory, as if its disk was not mounted.
func (w *world) lost(f Fault) (func() error, error) {
	root := w.disks[f.On%(len(w.disks)-1)].dir
	home, away := filepath.Join(root, ".stowage"), filepath.Join(root, filler+"home")
	end := func() error {
		return w.again(Proper, func() error {
			if _, err := os.Lstat(home); err == nil {
				w.blame("what is away is not made anew: there is %s, whose place another took that comes back", home)
			}
			return os.Rename(away, home)
		})
	}
	return end, w.again(Proper, func() error { return os.Rename(home, away) })
}

// record changes one of the driver's records while it does not run.
func (w *world) record(f Fault, damage func(path string, data []byte) error) (func() error, error) {
	var path string
	var data []byte
	err := w.again(Proper, func() (err error) {
		found := slices.DeleteFunc(w.tree(), func(path string) bool { return !isRecord(path) })
		if len(found) == 0 {
			return fmt.Errorf("there is no record: %w", errNotNow)
		}
		path = found[f.Draw%uint64(len(found))]
		if data, err = os.ReadFile(path); err == nil {
			err = damage(path, data)
		}
		return err
	})
	if err == nil {
		w.served()
	}
	return func() error {
		if path == "" {
			return w.again(Proper, nothing)
		}
		// The driver may have moved away the item of the record; then it is where an administrator looks for it.
		return w.again(Proper, func() error {
			return notNow(errors.Join(os.RemoveAll(path), os.WriteFile(path, data, 0o600)), fs.ErrNotExist)
		})
	}, err
}

// served checks that each class has room, even if a single record is broken.
func (w *world) served() {
	ctx, cancel := context.WithTimeout(w.life, attempt)
	defer cancel()
	for i, class := range w.setup.Classes {
		response, err := csi.NewControllerClient(w.control.connection()).GetCapacity(ctx, &csi.GetCapacityRequest{
			Parameters: class.Parameters, VolumeCapabilities: []*csi.VolumeCapability{capability(false)},
		})
		if err != nil || response.GetAvailableCapacity() == 0 {
			w.blame("what works is served: one record cannot be used, and class %d has room for %d bytes: %v", i,
				response.GetAvailableCapacity(), err)
		}
	}
}

// isRecord reports whether a file is the record of a volume or snapshot.
func isRecord(path string) bool {
	return strings.HasSuffix(path, "/record.json") && !strings.Contains(path, "/trash/") ||
		strings.HasSuffix(path, ".json") && slices.Contains([]string{"volumes", "snapshots", "making"},
			filepath.Base(filepath.Dir(path)))
}

func newer(path string, data []byte) error {
	changed := bytes.Replace(data, []byte(`"version": 1`), []byte(`"version": 99`), 1)
	changed = bytes.Replace(changed, []byte(`"version":1`), []byte(`"version":99`), 1)
	if bytes.Equal(changed, data) {
		return fmt.Errorf("%s has no version: %w", path, errNotNow)
	}
	return os.WriteFile(path, changed, 0o600)
}

// selfLink makes the record unreadable with ELOOP.
func selfLink(path string, _ []byte) error {
	return errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path))
}
