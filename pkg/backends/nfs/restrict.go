package nfs

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// allow refuses a share that the configuration lacks, if it is to be the only source of shares: no server is asked for
// anything then because a handle, a PersistentVolume or a class names it. Kinds: Denied.
func (e *engine) allow(address export.Address, one func(configured, named export.Address) bool) error {
	if !e.onlyShares {
		return nil
	}
	for _, configured := range e.named {
		if one(configured, address) {
			return nil
		}
	}
	return backends.Errorf(backends.Denied,
		"the share %s is none of the configuration, which allows no other (onlyShares): it has %q",
		address, slices.Sorted(maps.Keys(e.named)))
}

// within reports whether an export is another one, or a directory of it.
func within(configured, named export.Address) bool {
	return configured.Server == named.Server && covers(configured.Path, named.Path)
}

// covers reports whether a path is another one, or lies below it.
func covers(outer, inner string) bool {
	return outer == inner || strings.HasPrefix(inner, strings.TrimSuffix(outer, "/")+"/")
}

// checkApart refuses a directory that is the root of a share that is configured or known, or that lies above one,
// whether there are records yet or not: whoever has it mounted will find them there, and could write some of his own.
// No server is asked. What it cannot know is a share that only a class names, before its first volume and, on nodes,
// after that too; and a name or path of which nobody can tell that it leads to the same. Kinds: Invalid.
func (e *engine) checkApart(ctx context.Context, address export.Address, dir string) error {
	asked := path.Join(address.Path, dir)
	for _, p := range e.known.everywhere() {
		if covers(asked, p.Path) && e.mounter.SameServer(ctx, address.Server, p.Server) {
			return backends.Errorf(backends.Invalid,
				"%s is the root of the share %s or holds it, and in its %s the driver keeps what it knows of its volumes: name a "+
					"directory on the share, by the attribute subDir", address.Below(dir), p, share.HomeName)
		}
	}
	return nil
}

// checkStatic refuses a directory that holds a share's records, directly or where they would be if the directory lay
// above a known share: the server may have other names, and show what it exports under other paths. Kinds: Invalid;
// Unavailable.
func (e *engine) checkStatic(s *share.Share, dir string) error {
	if err := there(s, dir); err != nil {
		return err
	}
	if err := holdsNoRecords(s, dir); err != nil {
		return err
	}
	for _, p := range e.known.everywhere() {
		elements := strings.Split(strings.Trim(p.Path, "/"), "/")
		for i := range elements {
			err := holdsNoRecords(s, path.Join(dir, path.Join(elements[i:]...)))
			if err != nil && !isNoDirectory(err) {
				return err
			}
		}
	}
	return nil
}

// isNoDirectory reports whether there is nothing at a path, or something that no share's root is.
func isNoDirectory(err error) bool {
	return failure.IsAny(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.ENAMETOOLONG)
}

// holdsNoRecords refuses a directory that is the root of a share with records, or the driver's own. Kinds: Invalid;
// Unavailable.
func holdsNoRecords(s *share.Share, dir string) error {
	at := "."
	if dir != "" {
		at = dir
	}
	file, err := safepath.OpenBeneath(s.Dir(), at)
	if backends.Is(err, backends.Denied) {
		return nil // Who is kept out of a directory has no records in it.
	}
	if err != nil {
		return unreached(s, at, err)
	}
	defer closeQuietly(file)
	return noneIn(file, s.Address.Below(dir))
}

// noneIn refuses an open directory in which records are, or that is the driver's own. Kinds: Invalid; Unavailable.
func noneIn(dir *os.File, name string) error {
	if err := notOwn(dir, name); err != nil {
		return err
	}
	holds, err := holdsHome(dir)
	if err != nil {
		return backends.Errorf(backends.Unavailable, "whether %s is in %s cannot be seen: %w", share.HomeName, name, err)
	}
	if !holds {
		return nil
	}
	return backends.Errorf(backends.Invalid,
		"%s holds %s, in which the driver keeps what it knows of its volumes: name a directory on the share, by the "+
			"attribute subDir", name, share.HomeName)
}

// notOwn refuses a directory that is a share's own. Kinds: Invalid.
func notOwn(dir *os.File, name string) error {
	if !share.IsHome(dir) {
		return nil
	}
	return backends.Errorf(backends.Invalid,
		"%s leads to the driver's own directory %s, or into it: name a directory beside that", name, share.HomeName)
}

// holdsHome reports whether a share's records are in a directory. In one that keeps everybody out there are none.
func holdsHome(dir *os.File) (bool, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), share.HomeName, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}
