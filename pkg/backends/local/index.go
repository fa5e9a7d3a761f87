package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/stowage-csi/stowage/pkg/durable"
)

// indexFolder is the folder of the data directory with the pools' indexes, by pool name.
const indexFolder = "held"

// pathLink is the name, in an index, of the link to its pool. It exists if the index is complete.
const pathLink = "path"

// index is a folder with a file for each handle that a pool may hold, which describes the item (outline.go). It lists
// the contents of a pool that cannot be read, so that no handle is forgotten or reused. A handle is in it before it is
// in the pool.
type index struct {
	dir   string
	apart bool // whether the pool is on another filesystem, which may survive a power failure with newer contents
}

func indexOf(dataDir, pool string) index {
	return index{dir: filepath.Join(dataDir, indexFolder, pool)}
}

// add adds handles. On the same filesystem as the pool, the entries become durable with the next step there. Even if
// they did not, the pool is readable whenever the index is.
func (x index) add(handles ...string) error {
	for _, handle := range handles {
		file, err := os.OpenFile(filepath.Join(x.dir, handle), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	if x.apart {
		return durable.SyncDir(x.dir)
	}
	return nil
}

// drop removes handles. An entry that remains does no harm while the pool can be read.
func (x index) drop(handles ...string) {
	for _, handle := range handles {
		_ = os.Remove(filepath.Join(x.dir, handle)) // The next start of the pool tries again.
	}
}

// has reports whether the pool may hold the handle. An index that cannot be read may have every handle.
func (x index) has(handle string) bool {
	if x.dir == "" {
		return false
	}
	_, err := os.Lstat(filepath.Join(x.dir, handle))
	return !errors.Is(err, os.ErrNotExist)
}

// read returns the handles, and the pool's path if the index is complete.
func (x index) read() (handles []string, path string, err error) {
	entries, err := os.ReadDir(x.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	for _, entry := range entries {
		if entry.Name() != pathLink {
			handles = append(handles, entry.Name())
			continue
		}
		if path, err = os.Readlink(filepath.Join(x.dir, pathLink)); err != nil {
			return nil, "", err
		}
	}
	return handles, path, nil
}

// complete adds the handles that the pool was found to hold, and returns the handles that it does not hold.
func (x index) complete(have []string, path string) (extra []string, err error) {
	listed, at, err := x.read()
	if err != nil {
		return nil, err
	}
	missing := without(have, listed)
	extra = without(listed, have)
	if at == path && len(missing) == 0 {
		return extra, nil
	}
	if err := durable.MakeAll(x.dir, 0o700); err != nil {
		return extra, err
	}
	link := filepath.Join(x.dir, pathLink)
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return extra, err
	}
	if err := errors.Join(x.add(missing...), durable.SyncDir(x.dir)); err != nil {
		return extra, err
	}
	return extra, errors.Join(os.Symlink(path, link), durable.SyncDir(x.dir))
}

// without returns the handles of the first list that are not in the second.
func without(list, other []string) []string {
	known := make(map[string]struct{}, len(other))
	for _, handle := range other {
		known[handle] = struct{}{}
	}
	return slices.DeleteFunc(slices.Clone(list), func(handle string) bool {
		_, ok := known[handle]
		return ok
	})
}
