package disks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/dirlock"
	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// linksLock is the file by whose lock one engine has the directory of links: everybody may read that directory, and so
// lock it.
const linksLock = ".lock"

// lockLinks keeps other engines out of the directory of links.
func lockLinks(dir string) (*os.File, error) {
	path := filepath.Join(dir, linksLock)
	made, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = made.Close()
	}
	if err != nil {
		return nil, err
	}
	return dirlock.Lock(path)
}

// openLinks creates the directory of links, and makes the path in PersistentVolumes lead to it. The kubelet follows a
// link without checking the disk, and before any process of this driver runs: a link from before a reboot may lead to
// another disk.
func openLinks(path, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { // Others may read links.
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if fs.Type != unix.TMPFS_MAGIC && fs.Type != unix.RAMFS_MAGIC {
		return fmt.Errorf("the directory of links %s is on a disk: use one in memory, as below /run, so that no link "+
			"outlives the start of the machine, after which its device may be another disk", dir)
	}
	if path == dir {
		return nil
	}
	if err := removeLinks(path); err != nil {
		return fmt.Errorf("make %s lead to the directory of links %s: %w", path, dir, err)
	}
	return replaceLink(path, dir)
}

// removeLinks removes a directory of links on a disk, which earlier versions used. It keeps anything that is not a
// link; then the directory remains too, which is an error.
func removeLinks(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&os.ModeSymlink != 0:
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink != 0 {
			err = errors.Join(err, os.Remove(filepath.Join(path, entry.Name())))
		}
	}
	return errors.Join(err, os.Remove(path))
}

// unlinkOthers removes the links that no longer lead to their volume: while no process of this driver ran, a disk may
// have gone, and another may have got its node. A disk that does not answer does not delay the others.
func (e *Engine) unlinkOthers(ctx context.Context) error {
	entries, err := os.ReadDir(e.options.LinkDir)
	if err != nil {
		return err
	}
	removed := make(chan error, len(entries))
	for _, entry := range entries {
		go func() { removed <- e.unlinkOther(ctx, entry) }()
	}
	for range entries {
		err = errors.Join(err, <-removed)
	}
	return err
}

func (e *Engine) unlinkOther(ctx context.Context, entry os.DirEntry) error {
	path := filepath.Join(e.options.LinkDir, entry.Name())
	if entry.Type()&os.ModeSymlink == 0 || leadsTo(ctx, path, entry.Name()) {
		return nil
	}
	return os.Remove(path)
}

// leadsTo reports whether a link leads to the volume of the name. A disk that does not answer counts as another, except
// at the end of the engine, when the lack of an answer means nothing.
func leadsTo(ctx context.Context, path, name string) bool {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return false
	}
	is, err := discovery.NameAt(ctx, unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	return err == nil && is == name || ctx.Err() != nil
}

// link keeps a link to each device under its volume's name, and removes the links of devices that are gone. An offered
// volume keeps its link even if no rule selects it any more: a pod that is started again needs it. A volume that holds
// the data of a later user has none.
func (e *Engine) link(ctx context.Context, found []report.Volume) error {
	keep, errs := map[string]bool{}, []error(nil)
	for i := range found {
		v := &found[i]
		if v.Mode != report.Block {
			continue
		}
		v.Path = filepath.Join(e.options.LinkPath, v.Name)
		if v.State != report.Unusable && !e.isLaters(v.Name) {
			keep[v.Name] = true
			errs = append(errs, replaceLink(filepath.Join(e.options.LinkDir, v.Name), v.Device))
		}
	}
	nodes, err := discovery.Locate(ctx, e.unlisted(found))
	errs = append(errs, err)
	for name, node := range nodes {
		keep[name] = true
		errs = append(errs, replaceLink(filepath.Join(e.options.LinkDir, name), node))
	}
	entries, err := os.ReadDir(e.options.LinkDir)
	errs = append(errs, err)
	for _, entry := range entries {
		if !keep[entry.Name()] && entry.Type()&os.ModeSymlink != 0 {
			errs = append(errs, os.Remove(filepath.Join(e.options.LinkDir, entry.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("keep the links to devices: %w", err)
	}
	return nil
}

// isLaters reports whether a volume holds the data of a later user than that of its offer. It does if the volume was
// dirty when it was offered, and no look has found it free since: a restore of the cluster's objects has brought back
// an earlier offer, and its PersistentVolume.
func (e *Engine) isLaters(volume string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	note := e.volumes[volume]
	return note != nil && note.isLaters()
}

func (n *volumeNote) isLaters() bool { return n.Unproven && n.DirtyBefore }

// unlisted returns the volumes that are offered, or may be, and were not found.
func (e *Engine) unlisted(found []report.Volume) map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	names := map[string]bool{}
	for name, note := range e.volumes {
		if _, isOffered := e.offers[name]; note.Dirty && (isOffered || !e.told) && !note.isLaters() {
			names[name] = true
		}
	}
	for _, v := range found {
		delete(names, v.Name)
	}
	return names
}

// replaceLink creates or changes a link in one step.
func replaceLink(path, to string) error {
	if now, err := os.Readlink(path); err == nil && now == to {
		return nil
	}
	draft := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.Remove(draft); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(to, draft); err != nil {
		return err
	}
	return os.Rename(draft, path)
}
