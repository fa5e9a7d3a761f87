package nfs

import (
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

// reserve claims the directory of a volume, and creates its parent directories. Kinds: Invalid for a directory that is
// not the driver's, or is another volume's; Busy.
func (m *making) reserve(r *record) error {
	if err := m.claim(r); err != nil {
		return err
	}
	parent, err := m.parent(m.share, m.home, r.SubDir)
	if err != nil {
		return err
	}
	defer closeQuietly(parent)
	there, err := exists(parent, path.Base(r.SubDir))
	if err == nil && there {
		err = notOurs(r.SubDir, m.share)
	}
	return err
}

func notOurs(dir string, s *share.Share) error {
	return backends.Errorf(backends.Invalid,
		"the directory %s is on %s already, and this driver did not make it for this volume: use another subDir, such as "+
			"one with ${pv.metadata.name}", dir, s.Address)
}

// exists reports whether the name exists. All of its elements except the last must be the driver's own.
func exists(dir *os.File, name string) (bool, error) {
	_, err := safepath.NewRoot(dir).Lstat(name, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// claimOf returns the name of the claim on a directory.
func claimOf(subDir string) string {
	sum := sha256.Sum256([]byte(subDir))
	return hex.EncodeToString(sum[:16])
}

// claim claims the directory for the volume. Kinds: Invalid when it is another volume's; Busy while that is being
// removed or made.
func (m *making) claim(r *record) error {
	name := claimOf(r.SubDir)
	holder, err := m.home.Claim(name, r.key())
	if err != nil || holder == r.key() {
		return err
	}
	if err := m.unclaimDead(m.share, m.home, name, holder); err != nil {
		return err
	}
	if holder, err = m.home.Claim(name, r.key()); err != nil || holder == r.key() {
		return err
	}
	return m.taken(holder, r)
}

// unclaimDead releases a directory whose holder does not exist and will not.
func (e *engine) unclaimDead(s *share.Share, h *share.Home, name, holder string) error {
	if dead, err := e.dead(h, holder); err != nil || !dead {
		return err
	}
	return unclaim(s, h, name, holder)
}

// dead reports whether a volume does not exist and will not: it has no token, and no record. The order of the folders
// is that in which a volume goes through them. If a late deletion has moved the record away, it is put back. Records in
// making are of an earlier version of the driver. Kinds: Busy where a record was put back; Unavailable where the folder
// of the records is missing.
func (e *engine) dead(h *share.Home, key string) (bool, error) {
	id, turn, _ := strings.Cut(key, "-")
	places := [][2]string{{share.Staging, key}, {share.Making, string(volumeKind) + "-" + id}, {share.Volumes, id},
		{share.Trash, key}}
	lives, err := anyOf(h, turn, places)
	if err != nil || lives {
		return false, err
	}
	if err = h.Check(); err == nil {
		err = hasFolder(h, share.Volumes)
	}
	if err == nil {
		err = e.layEverywhere(h, id)
	}
	if err != nil {
		return false, err
	}
	lives, err = anyOf(h, turn, places)
	return err == nil && !lives, err
}

// anyOf reports whether one of the records, each a folder and a name, exists and has the turn.
func anyOf(h *share.Home, turn string, places [][2]string) (bool, error) {
	for _, at := range places {
		r, err := read(h, at[0], at[1]+suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return false, err
		case r.Turn == turn:
			return true, nil
		}
	}
	return false, nil
}

// taken returns the failure that names the holder of a directory.
func (m *making) taken(holder string, r *record) error {
	id, _, _ := strings.Cut(holder, "-")
	other, err := read(m.home, share.Volumes, id+suffix)
	if err == nil && id != r.ID {
		return backends.Errorf(backends.Invalid,
			"the directory %s on %s belongs to the volume %q: a directory is for one volume; use another subDir, such as one "+
				"with ${pv.metadata.name}", r.SubDir, m.share.Address, other.Name)
	}
	m.janitors.add(m.share.Address)
	return backends.Errorf(backends.Busy, "the directory %s is of a volume that is being made or deleted: ask again",
		r.SubDir)
}

// parent opens the parent of the volume's directory, and creates its missing elements. It may not be in another volume,
// because a pod could change there what the driver relies on, nor on another share below this one, because only that
// share knows where its volumes are. Claims are checked after the directories exist. So of two volumes of which one
// would be inside the other, at least one notices. Kinds: Invalid.
func (e *engine) parent(s *share.Share, h *share.Home, subDir string) (*os.File, error) {
	dir := path.Dir(subDir)
	if dir == "." {
		return openDir(s, ".")
	}
	var at string
	for element := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, element)
		if err := e.parentAt(s, h, at); err != nil {
			return nil, err
		}
		if err := noShareAt(s, at); err != nil {
			return nil, err
		}
	}
	return openDir(s, dir)
}

// openDir opens a directory of the share that must exist: its absence says nothing about volumes.
func openDir(s *share.Share, dir string) (*os.File, error) {
	file, err := safepath.OpenBeneath(s.Dir(), dir)
	if backends.Is(err, backends.NotFound) {
		return nil, backends.Errorf(backends.Unavailable, "a directory on %s has gone: %w", s.Address, err)
	}
	return file, err
}

func (e *engine) parentAt(s *share.Share, h *share.Home, at string) error {
	up, err := openDir(s, path.Dir(at))
	if err != nil {
		return err
	}
	defer closeQuietly(up)
	err = unix.Mkdirat(int(up.Fd()), path.Base(at), 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return &os.PathError{Op: "mkdir", Path: at, Err: err}
	}
	holder, err := h.Claimed(claimOf(at))
	if err != nil || holder == "" {
		return err
	}
	if dead, err := e.dead(h, holder); err != nil || dead {
		return err
	}
	return backends.Errorf(backends.Invalid,
		"the directory %s on %s belongs to another volume: a volume cannot be inside it; use another subDir", at, s.Address)
}

// noShareAt refuses a directory that is the root of another share. Kinds: Invalid.
func noShareAt(s *share.Share, at string) error {
	dir, err := openDir(s, at)
	if err != nil {
		return err
	}
	defer closeQuietly(dir)
	holds, err := holdsHome(dir)
	if err == nil && holds {
		err = backends.Errorf(backends.Invalid,
			"the directory %s on %s is the root of another share, as it holds %s: use a class of that share, or another subDir",
			at, s.Address, share.HomeName)
	}
	return err
}

// fileMode converts permissions to those of package os.
func fileMode(mode uint32) os.FileMode {
	m := os.FileMode(mode & 0o777)
	for bit, flag := range map[uint32]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}
