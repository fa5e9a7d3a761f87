package share

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// HomeName is the driver's own directory at the root of a share.
const HomeName = ".stowage"

// The folders of a Home.
const (
	Volumes   = "volumes"   // records of volumes
	Snapshots = "snapshots" // records and contents of snapshots
	Groups    = "groups"    // records of groups of snapshots
	Making    = "making"    // records of unfinished items
	Staging   = "staging"   // unfinished items, and drafts of records
	Claims    = "claims"    // the owners of directories
	Burials   = "burials"   // records that deletions have just moved, before they are laid
	Trash     = "trash"     // records and contents of items that are being removed
	Retained  = "retained"  // records of volumes whose data was left in place
	// Controllers has the permits of controllers to create and remove.
	Controllers = "controllers"
)

func folders() []string {
	return []string{Volumes, Snapshots, Groups, Making, Staging, Claims, Burials, Trash, Retained, Controllers}
}

const (
	identityFile    = "share.json"
	keyFile         = "key"
	identityVersion = 1
	identityBytes   = 6
	idBytes         = 16
)

// MaxRecord is the maximum size of a record, in bytes.
const MaxRecord = 64 << 10

// Home is the driver's own directory on a share.
type Home struct {
	address export.Address
	dir     *os.File      // the share's root
	files   safepath.Root // over dir
	id      [identityBytes]byte
	key     []byte // makes IDs that follow from a name but cannot be guessed from it; nil if it may not be read
	// keyless is the reason for which there is no key.
	keyless error
	lostKey bool // The key is missing. An operator may restore it.
	// names are locked for reading while a file is open, and for writing while its name is changed: see rename.
	names *nameLocks
	// budget limits reads; nil for no limit.
	budget *Budget
	// ended returns why reads must end; nil for a Home without an end.
	ended func() error
}

// identity is the contents of share.json.
type identity struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
}

// Home returns the driver's directory. If there is none, Home creates it if create is set; otherwise Home fails with
// fs.ErrNotExist.
func (s *Share) Home(create bool) (*Home, error) {
	s.home.Lock()
	defer s.home.Unlock()
	if s.known != nil {
		return s.known, nil
	}
	h, err := openHome(s.root.Dir, s.files)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err := makeHome(s.files); err != nil {
			return nil, fmt.Errorf("the directory %s could not be made at the root of %s: %w", HomeName, s.Address, err)
		}
		h, err = openHome(s.root.Dir, s.files)
	}
	if err != nil {
		return nil, err
	}
	h.address = s.Address
	if !h.lostKey {
		s.known = h
	}
	return h, nil
}

func openHome(dir *os.File, files safepath.Root) (*Home, error) {
	h := &Home{dir: dir, files: files, names: new(nameLocks)}
	is, err := h.readIdentity()
	if err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(is.ID)
	if err != nil || is.Version != identityVersion || len(id) != identityBytes {
		return nil, backends.Errorf(backends.Unavailable,
			"%s/%s is not as this driver writes it: was it made by a newer one?", HomeName, identityFile)
	}
	h.id = [identityBytes]byte(id)
	return h, h.readKey()
}

// readKey reads the key. A node whose root the server maps to nobody may not read it, and does not need it. Nor do
// calls with a handle: they continue if the key is missing.
func (h *Home) readKey() error {
	text, err := readSmall(h.dir, path.Join(HomeName, keyFile))
	if errors.Is(err, fs.ErrPermission) {
		h.keyless = err
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) { // It is not wrapped, so that no caller creates another key.
		h.lostKey = true
		h.keyless = backends.Errorf(backends.Unavailable,
			"%s/%s is missing, so that nothing is found by its name: restore it from a backup, or make a new one as "+
				"docs/guides/nfs.md says. Leave %s/%s where it is: without it no handle is accepted", HomeName, keyFile, HomeName,
			identityFile)
		return nil
	}
	if err != nil {
		return backends.Errorf(backends.Unavailable, "%s/%s cannot be read: restore it from a backup: %w", HomeName, keyFile,
			err)
	}
	key, err := hex.DecodeString(string(text))
	if err != nil || len(key) != sha256.Size {
		return backends.Errorf(backends.Unavailable, "%s/%s is not as this driver writes it: restore it from a backup",
			HomeName, keyFile)
	}
	h.key = key
	return nil
}

func (h *Home) readIdentity() (is identity, err error) {
	data, err := readSmall(h.dir, path.Join(HomeName, identityFile))
	if err != nil {
		return is, err
	}
	if err := json.Unmarshal(data, &is); err != nil {
		return is, backends.Errorf(backends.Unavailable, "%s/%s is damaged: restore it from a backup: %w", HomeName,
			identityFile, err)
	}
	return is, nil
}

// makeHome creates what is missing. If several do so at once, one provides the key and one the identity, by links that
// never replace. Only the driver may list or change anything. But a node, whose root the server may map to nobody, must
// be able to read a record whose name it knows.
func makeHome(files safepath.Root) error {
	h := &Home{files: files, names: new(nameLocks)}
	for _, dir := range append([]string{""}, folders()...) {
		mode := os.FileMode(0o700)
		if dir == "" || dir == Volumes {
			mode = 0o711
		}
		err := files.Mkdir(path.Join(HomeName, dir), mode)
		if err == nil {
			err = files.Chmod(path.Join(HomeName, dir), mode)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	secret := make([]byte, identityBytes+sha256.Size)
	_, _ = rand.Read(secret) // It never fails (crypto/rand).
	if err := h.WriteNew("", keyFile, []byte(hex.EncodeToString(secret[identityBytes:]))); err != nil &&
		!errors.Is(err, fs.ErrExist) {
		return err
	}
	data, err := json.Marshal(identity{identityVersion, hex.EncodeToString(secret[:identityBytes])})
	if err != nil {
		return err
	}
	if err := h.WriteNew("", identityFile, data); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// IsHome reports whether a directory is itself a share's Home.
func IsHome(dir *os.File) bool {
	for _, name := range []string{identityFile, keyFile} {
		var stat unix.Stat_t
		if unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return false
		}
	}
	return true
}

// Address returns the address at which the share was reached.
func (h *Home) Address() export.Address { return h.address }

// Identity identifies this share among all others, wherever it is exported.
func (h *Home) Identity() [identityBytes]byte { return h.id }

// Check fails unless the share is still the same. Kinds: Unavailable.
func (h *Home) Check() error {
	is, err := h.readIdentity()
	if errors.Is(err, fs.ErrNotExist) { // It is not wrapped: callers act on the absence of another file.
		return backends.Errorf(backends.Unavailable,
			"the share no longer has the driver's %s/%s: does the server export something else? %v", HomeName, identityFile, err)
	}
	if err != nil {
		return backends.Errorf(backends.Unavailable, "the driver's %s/%s cannot be read: %w", HomeName, identityFile, err)
	}
	if is.ID != hex.EncodeToString(h.id[:]) {
		return backends.Errorf(backends.Unavailable,
			"the server exports another share than it did: bring back the one with identity %x", h.id)
	}
	return nil
}

// CheckKey fails unless the share still has the same key: with another one all names have other IDs. Kinds:
// Unavailable; Denied for a process that may not read it.
func (h *Home) CheckKey() error {
	if err := h.Refresh(""); err != nil { // The kernel may cache the file that had the name before.
		return err
	}
	now := &Home{dir: h.dir}
	if err := now.readKey(); err != nil {
		return err
	}
	if now.keyless != nil {
		return now.keyless
	}
	if !hmac.Equal(now.key, h.key) {
		return backends.Errorf(backends.Unavailable,
			"%s/%s was replaced while the share was in use: put back the one that was there", HomeName, keyFile)
	}
	return nil
}

// ID returns the ID of the item with the name. The same name has the same ID on the same share, so that reserving the
// ID reserves the name. Without read access to the share, the ID cannot be determined. Kinds: Denied for a process that
// may not read the key: without it the ID would be another one. Unavailable where the key is missing.
func (h *Home) ID(kind, name string) (string, error) {
	if h.keyless != nil {
		return "", h.keyless
	}
	mac := hmac.New(sha256.New, h.key)
	mac.Write([]byte(kind + "\x00" + name))
	return hex.EncodeToString(mac.Sum(nil)[:idBytes]), nil
}

// Random returns a unique text of hexadecimal digits that cannot be guessed.
func Random() string {
	text := make([]byte, 8)
	_, _ = rand.Read(text) // It never fails (crypto/rand).
	return hex.EncodeToString(text)
}

// readSmall returns the contents of a file. A missing file is fs.ErrNotExist, and not of the Kind NotFound: only the
// caller knows whether that means that there is no such volume. Kinds: Unusable for an entry that is no file, or a file
// that cannot be read.
func readSmall(dir *os.File, name string) (data []byte, err error) {
	file, err := safepath.OpenFileBeneath(dir, name)
	if errors.Is(err, fs.ErrPermission) {
		return nil, backends.Errorf(backends.Denied, "%w", err)
	}
	if backends.Is(err, backends.Invalid) { // It leads elsewhere.
		return nil, backends.Errorf(backends.Unusable, "%w", err)
	}
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "%w", err)
	}
	defer func() { _ = file.Close() }() // read only
	data, err = io.ReadAll(io.LimitReader(file, MaxRecord+1))
	if err == nil && len(data) > MaxRecord {
		err = backends.Errorf(backends.Unusable, "%s has more than %d bytes: no record of this driver does", name, MaxRecord)
	}
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EIO) {
		err = backends.Errorf(backends.Unusable, "%w", err)
	}
	return data, err
}
