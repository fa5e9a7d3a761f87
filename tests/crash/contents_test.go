package crash

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// contents is the expected content of a volume: the checksum of each file, or of each extent of a raw device, that was
// written and synced.
type contents map[string][sha256.Size]byte

// extent is the size of a write to a raw device.
const extent = mib

// write writes new data, syncs it, and adds it to the expected content.
func (w *worker) write(v *volume) error {
	data := make([]byte, extent)
	if !v.kind.block {
		data = data[:1+w.rng.IntN(extent)]
	}
	for i := range data {
		data[i] = byte(w.rng.Uint32())
	}
	name := fmt.Sprintf("%03d", len(v.data))
	return w.do("write", v.Claim.Name, func(context.Context) error {
		if err := v.put(name, data); err != nil {
			return err
		}
		v.data[name] = sha256.Sum256(data)
		return nil
	})
}

func (v *volume) put(name string, data []byte) error {
	path, flags, offset := filepath.Join(v.Target(), name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, int64(0)
	if v.kind.block {
		path, flags, offset = v.Target(), os.O_WRONLY, v.offset(name)
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, offset)
	return errors.Join(err, file.Sync(), file.Close())
}

// offset returns the position of an extent on a raw device.
func (v *volume) offset(name string) int64 {
	var n int64
	if _, err := fmt.Sscanf(name, "%d", &n); err != nil {
		panic(err) // write creates the names.
	}
	return n * extent
}

// verify reads the volume and compares it with the expected content: no file is missing, extra or different.
func (w *worker) verify(v *volume) error {
	return w.do("verify", v.Claim.Name, func(context.Context) error {
		if !v.kind.block {
			if err := v.sameNames(); err != nil {
				return err
			}
		}
		for name, want := range v.data {
			data, err := v.get(name)
			if err != nil {
				return err
			}
			if got := sha256.Sum256(data); got != want {
				return fmt.Errorf("%s holds WRONG DATA: %d bytes with sha256 %x, want %x", name, len(data), got, want)
			}
		}
		return nil
	})
}

func (v *volume) sameNames() error {
	entries, err := os.ReadDir(v.Target())
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != "lost+found" {
			names = append(names, entry.Name())
		}
	}
	if want := slices.Sorted(maps.Keys(v.data)); !slices.Equal(names, want) {
		return fmt.Errorf("WRONG FILES: it holds %q, want %q", names, want)
	}
	return nil
}

func (v *volume) get(name string) ([]byte, error) {
	if !v.kind.block {
		return os.ReadFile(filepath.Join(v.Target(), name))
	}
	device, err := os.Open(v.Target())
	if err != nil {
		return nil, err
	}
	data := make([]byte, extent)
	_, err = device.ReadAt(data, v.offset(name))
	return data, errors.Join(err, device.Close())
}

// size returns the size of the filesystem or of the raw device in bytes, as its user sees it.
func (v *volume) size() (int64, error) {
	if !v.kind.block {
		var fs unix.Statfs_t
		if err := unix.Statfs(v.Target(), &fs); err != nil {
			return 0, err
		}
		return int64(fs.Blocks) * fs.Bsize, nil
	}
	device, err := os.Open(v.Target())
	if err != nil {
		return 0, err
	}
	size, err := device.Seek(0, io.SeekEnd)
	return size, errors.Join(err, device.Close())
}

// grown checks that the volume's size has grown by nearly the given number of bytes, if sizes are enforced.
func (v *volume) grown(before, by int64) error {
	after, err := v.size()
	if err != nil || !v.kind.enforced {
		return err
	}
	if after < before+by*8/10 {
		return fmt.Errorf("NOT GROWN: it had %d bytes and was to get %d more, and has %d", before, by, after)
	}
	return nil
}
