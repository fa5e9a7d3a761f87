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
	Making    = "making"    // records of what is being made
	Staging   = "staging"   // what is being made, and drafts of records
	Claims    = "claims"    // who owns which directory
	Burials   = "burials"   // records that deletions have just moved, and that nobody has looked at there yet
	Trash     = "trash"     // records and contents of what is being removed
	Retained  = "retained"  // records of volumes whose data was left where it is
	// Controllers has the permits of controllers to make and remove.
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

// MaxRecord is more than any record has, in bytes.
const MaxRecord = 64 << 10

// Home is the driver's own directory on a share.
type Home struct {
	address export.Address
	dir     *os.File      // the share's root
	files   safepath.Root // over dir
	id      [identityBytes]byte
	key     []byte // makes IDs that follow from a name and cannot be guessed from it; nil for who may not read it
	// keyless is why there is no key.
	keyless error
	lostKey bool // The key is missing. Somebody may bring it back.
	// names are held for reading while a file is open, and for writing while its name is changed: see rename.
	names *nameLocks
	// budget is what reads are taken from; nil for none.
	budget *Budget
	// ended is why nobody waits for what is read any more; nil for a Home without an end.
	ended func() error
}

// identity is share.json.
type identity struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
}

// Home returns the driver's directory. It is made only if create says so; else, where there is none, the error is one
// of fs.ErrNotExist.
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

// readKey reads the key. A node whose root is nobody on the server may not, and needs none. Nor do calls that have a
// handle: where the key is missing they go on.
func (h *Home) readKey() error {
	text, err := readSmall(h.dir, path.Join(HomeName, keyFile))
	if errors.Is(err, fs.ErrPermission) {
		h.keyless = err
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) { // That is not wrapped: who makes what is missing would make another key.
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

// makeHome makes what is missing. Of several who do so at once one gives the key and one the identity, by links that
// never replace. Nobody but the driver may list or change anything; but a node, whose root may be nobody on the server,
// must be able to read the record whose name it knows.
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

// Address is where the share was reached.
func (h *Home) Address() export.Address { return h.address }

// Identity tells this share from all others, wherever it is exported.
func (h *Home) Identity() [identityBytes]byte { return h.id }

// Check looks whether the share is still the one that it was. Kinds: Unavailable.
func (h *Home) Check() error {
	is, err := h.readIdentity()
	if errors.Is(err, fs.ErrNotExist) { // That is not wrapped: who asks acts on another file that is not there.
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

// CheckKey looks whether the share still has the key that it had: with another one all names have other IDs. Kinds:
// Unavailable; Denied for who may not read it.
func (h *Home) CheckKey() error {
	if err := h.Refresh(""); err != nil { // The kernel may remember the file that had the name before.
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

// ID makes the ID of what has the name. The same name has the same ID on the same share, so that reserving the ID
// reserves the name; and nobody who cannot read the share can tell the ID. Kinds: Denied for who may not read the key:
// without it the ID would be another one. Unavailable where the key is missing.
func (h *Home) ID(kind, name string) (string, error) {
	if h.keyless != nil {
		return "", h.keyless
	}
	mac := hmac.New(sha256.New, h.key)
	mac.Write([]byte(kind + "\x00" + name))
	return hex.EncodeToString(mac.Sum(nil)[:idBytes]), nil
}

// Random makes a text of hexadecimal digits that nobody has or guesses.
func Random() string {
	text := make([]byte, 8)
	_, _ = rand.Read(text) // It never fails (crypto/rand).
	return hex.EncodeToString(text)
}

// readSmall returns what a file holds. What is not there is fs.ErrNotExist, and not of the Kind NotFound: that there is
// no such volume is for others to say. Kinds: Unusable for what is there and no file, or one that cannot be read.
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
