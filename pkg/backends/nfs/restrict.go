package nfs

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
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

// within tells whether an export is another one, or a directory of it.
func within(configured, named export.Address) bool {
	return configured.Same(named) || configured.Server == named.Server &&
		strings.HasPrefix(named.Path, strings.TrimSuffix(configured.Path, "/")+"/")
}

// checkStatic refuses a directory that holds a share's records: whoever has it mounted could write some of his own.
// Kinds: Invalid; Unavailable.
func checkStatic(s *share.Share, dir string) error {
	if err := there(s, dir); err != nil {
		return err
	}
	at := "."
	if dir != "" {
		at = dir
	}
	file, err := safepath.OpenBeneath(s.Dir(), at)
	if backends.Is(err, backends.Denied) {
		return nil // Who is kept out of a directory has no records in it.
	}
	if err != nil {
		return backends.Errorf(backends.Unavailable, "the directory %s on %s cannot be reached: %w", at, s.Address, err)
	}
	defer closeQuietly(file)
	var stat unix.Stat_t
	err = unix.Fstatat(int(file.Fd()), share.HomeName, &stat, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EACCES):
		return nil
	case err != nil:
		return backends.Errorf(backends.Unavailable, "whether %s is on %s cannot be seen: %w", share.HomeName, s.Address, err)
	}
	return backends.Errorf(backends.Invalid,
		"%s holds %s, in which the driver keeps what it knows of its volumes: name a directory on the share, by the "+
			"attribute subDir",
		s.Address.Below(dir), share.HomeName)
}
