package adversary

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	extents = 16
	stride  = 64 << 10
)

// put writes one version to a published volume, and syncs it or leaves that to the caller. A file is replaced as a
// whole.
func put(target, name string, raw, sync bool, id uint64) error {
	data := payload(name, id)
	if raw {
		file, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = file.WriteAt(data, extentAt(name))
		return errors.Join(err, file.Sync(), file.Close())
	}
	path := filepath.Join(target, name)
	file, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if sync {
		err = errors.Join(err, file.Sync())
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil || !sync {
		return err
	}
	dir, err := os.Open(target)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// flush syncs a whole published filesystem.
func flush(target string) error {
	dir, err := os.Open(target)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
}

func extentAt(name string) int64 {
	var n int64
	_, _ = fmt.Sscanf(name, "r%d", &n) // the program makes these names
	return n * stride
}

// look reads the contents of a published volume.
func look(target string, raw bool) (vector, error) {
	if raw {
		return lookRaw(target)
	}
	entries, err := os.ReadDir(target)
	if err != nil {
		return nil, err
	}
	found := vector{}
	for _, entry := range entries {
		name := entry.Name()
		if name == "lost+found" || strings.HasSuffix(name, ".tmp") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(target, name))
		if err != nil {
			return nil, err
		}
		if found[name], err = versionOf(name, data); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func lookRaw(target string) (vector, error) {
	device, err := os.Open(target)
	if err != nil {
		return nil, err
	}
	defer device.Close() //nolint:errcheck // it was only read
	// The page cache of an earlier device of that number does not matter.
	_ = unix.Fadvise(int(device.Fd()), 0, 0, unix.FADV_DONTNEED)
	found := vector{}
	for n := range extents {
		name := fmt.Sprintf("r%d", n)
		data := make([]byte, 4096)
		if _, err := device.ReadAt(data, extentAt(name)); err != nil {
			return nil, err
		}
		id, err := versionOf(name, data)
		if err != nil {
			return nil, err
		}
		if id != 0 {
			found[name] = id
		}
	}
	return found, nil
}
