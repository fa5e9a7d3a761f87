package nfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// build makes the data and puts it in its place. It may be called again for the same record, also by another process.
func (m *making) build(ctx context.Context, r *record) error {
	switch r.Kind {
	case snapshotKind:
		return m.buildSnapshot(ctx, r)
	case groupKind:
		return m.buildGroup(ctx, r)
	case volumeKind:
	}
	if err := m.claim(r); err != nil {
		return err
	}
	parent, err := m.parent(r.SubDir)
	if err != nil {
		return err
	}
	defer closeQuietly(parent)
	base := path.Base(r.SubDir)
	placed, err := m.placed(r, parent, base)
	if err != nil || placed {
		return err
	}
	if err := m.fill(ctx, r); errors.Is(err, fs.ErrNotExist) {
		return backends.Errorf(backends.Busy, "another controller goes on with it: ask again: %w", err)
	} else if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err = unix.Renameat(int(m.share.Dir().Fd()), share.At(share.Staging, r.key()), int(parent.Fd()), base)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.LinkError{Op: "rename", Old: share.At(share.Staging, r.key()), New: r.SubDir, Err: err}
	}
	return nil
}

// placed tells whether an earlier call has put the data in its place. A reservation is written after its draft is made,
// so that a draft that is gone has been moved; and what is at the place beside a draft is not the driver's. Another controller may
// move the draft between two looks: that is why it is looked at twice. Kinds: Invalid for what is not the driver's.
func (m *making) placed(r *record, parent *os.File, base string) (bool, error) {
	draft := share.At(share.Staging, r.key())
	before, err := exists(m.share.Dir(), draft)
	if err != nil {
		return false, err
	}
	there, err := exists(parent, base)
	switch {
	case err != nil || there && !before:
		return there, err
	case !there && !before:
		return false, m.redraft(r)
	case !there:
		return false, nil
	}
	after, err := exists(m.share.Dir(), draft)
	if err != nil || !after {
		return true, err
	}
	return false, backends.Errorf(backends.Invalid, "the directory %s is on %s already, and this driver did not make it for this volume: use another subDir, such as one with ${pv.metadata.name}", r.SubDir, m.share.Address)
}

// redraft makes a draft again that somebody has removed. Only then: were a draft made that another controller has just moved, the
// empty directory would take the place of the volume.
func (m *making) redraft(r *record) error {
	if now, err := read(m.home, share.Making, r.Kind.makingName(r.ID)); err != nil || now.Turn != r.Turn {
		return backends.Errorf(backends.Busy, "another controller has gone on with it: ask again")
	}
	return m.share.Files().Mkdir(share.At(share.Staging, r.key()), 0o700)
}

// exists tells whether there is something of that name, which is the driver's own but for its last element.
func exists(dir *os.File, name string) (bool, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return true, nil
}

// claimOf is the name of the claim on a directory.
func claimOf(subDir string) string {
	sum := sha256.Sum256([]byte(subDir))
	return hex.EncodeToString(sum[:16])
}

// claim takes the directory for the volume. Kinds: Invalid when it is another volume's; Busy while that is being removed.
func (m *making) claim(r *record) error {
	holder, err := m.home.Claim(claimOf(r.SubDir), r.key())
	if err != nil || holder == r.key() {
		return err
	}
	return m.taken(holder, r.SubDir)
}

// taken says whose a directory is.
func (m *making) taken(holder, dir string) error {
	if _, err := m.home.Read(share.Trash, holder+suffix); err == nil {
		m.janitors.wake(m.share.Address)
		return backends.Errorf(backends.Busy, "the directory %s is of a volume that is being deleted: ask again", dir)
	}
	id, _, _ := strings.Cut(holder, "-")
	if other, err := read(m.home, share.Volumes, id+suffix); err == nil {
		return backends.Errorf(backends.Invalid, "the directory %s on %s belongs to the volume %q: a directory is for one volume; use another subDir, such as one with ${pv.metadata.name}", dir, m.share.Address, other.Name)
	}
	return backends.Errorf(backends.Busy, "the directory %s is of a volume that is being made: ask again", dir)
}

// parent opens the directory that is to hold the volume's, and makes what is missing of it. It may not be in another
// volume: a pod could change there what the driver relies on. Claims are looked at after the directories are there, so that of
// two volumes of which one would be inside the other one notices. Kinds: Invalid.
func (m *making) parent(subDir string) (*os.File, error) {
	dir := path.Dir(subDir)
	if dir == "." {
		return openDir(m.share, ".")
	}
	var at string
	for element := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, element)
		if err := m.parentAt(at); err != nil {
			return nil, err
		}
	}
	return openDir(m.share, dir)
}

// openDir opens a directory of the share that must be there: that it is not says nothing about volumes.
func openDir(s *share.Share, dir string) (*os.File, error) {
	file, err := safepath.OpenBeneath(s.Dir(), dir)
	if backends.Is(err, backends.NotFound) {
		return nil, backends.Errorf(backends.Unavailable, "a directory on %s has gone: %w", s.Address, err)
	}
	return file, err
}

func (m *making) parentAt(at string) error {
	up, err := openDir(m.share, path.Dir(at))
	if err != nil {
		return err
	}
	defer closeQuietly(up)
	err = unix.Mkdirat(int(up.Fd()), path.Base(at), 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return &os.PathError{Op: "mkdir", Path: at, Err: err}
	}
	holder, err := m.home.Claimed(claimOf(at))
	if err != nil || holder == "" {
		return err
	}
	return backends.Errorf(backends.Invalid, "the directory %s on %s belongs to another volume: a volume cannot be inside it; use another subDir", at, m.share.Address)
}

// fill makes the data in staging.
func (m *making) fill(ctx context.Context, r *record) error {
	files, draft := m.share.Files(), share.At(share.Staging, r.key())
	if m.origin.folder != "" {
		if err := m.copyFrom(ctx, r, draft); err != nil {
			return err
		}
	}
	switch {
	case r.Permissions != 0:
		return files.Chmod(draft, fileMode(r.Permissions))
	case m.origin.folder == "":
		return files.Chmod(draft, defaultPermissions)
	}
	return nil
}

// fileMode is permissions as package os has them.
func fileMode(mode uint32) os.FileMode {
	m := os.FileMode(mode & 0o777)
	for bit, flag := range map[uint32]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}
