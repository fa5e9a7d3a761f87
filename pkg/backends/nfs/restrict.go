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
	"github.com/stowage-csi/stowage/pkg/secret"
)

// shareNamed returns the address of a share of the configuration. A share that the configuration lacks may have been in
// it before, and hold items. Kinds: Unavailable then.
func (e *engine) shareNamed(name string) (export.Address, error) {
	address, ok := e.named[name]
	if !ok {
		return address, backends.Errorf(backends.Unavailable,
			"the driver's configuration has no share %.64q now: add it again, or name one that it has: %q",
			secret.Option(name), slices.Sorted(maps.Keys(e.named)))
	}
	return address, nil
}

// allow refuses a share that is not configured, if only configured shares are allowed. The driver then calls no server
// that only a handle, a PersistentVolume or a class names. Kinds: Denied.
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

// checkApart refuses a directory that is the root of a configured or known share, or lies above one, even if the share
// has no records yet: a pod that mounts it would find later records, and could write its own. It calls no server. It
// cannot know two cases: a share that only a class names, before its first volume and, on nodes, also after that; and a
// name or path that leads to the same share unnoticed. Kinds: Invalid.
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

// checkStatic refuses a directory that holds a share's records. They may be in it, or where they would be if the
// directory lay above a known share: the server may have other names, and show its exports under other paths. Kinds:
// Invalid; Unavailable.
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

// isNoDirectory reports whether a path does not exist, or cannot be a share's root.
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
		return nil // If the driver has no access to a directory, it has no records there.
	}
	if err != nil {
		return unreached(s, at, err)
	}
	defer closeQuietly(file)
	return noneIn(file, s.Address.Below(dir))
}

// noneIn refuses an open directory that holds records, or is the driver's own. Kinds: Invalid; Unavailable.
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

// holdsHome reports whether a directory holds a share's records. A directory that denies the driver access counts as
// holding none.
func holdsHome(dir *os.File) (bool, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), share.HomeName, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}
