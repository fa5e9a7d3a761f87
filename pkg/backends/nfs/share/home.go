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

	"github.com/stowage-csi/stowage/pkg/backends"
)

// HomeName is the driver's own directory at the root of a share.
const HomeName = ".stowage"

// The folders of a Home.
const (
	Volumes   = "volumes"   // records of volumes
	Snapshots = "snapshots" // records and contents of snapshots
	Making    = "making"    // records of what is being made
	Staging   = "staging"   // what is being made, and drafts of records
	Claims    = "claims"    // who owns which directory
	Trash     = "trash"     // records and contents of what is being removed
	Retained  = "retained"  // records of volumes whose data was left where it is
)

func folders() []string {
	return []string{Volumes, Snapshots, Making, Staging, Claims, Trash, Retained}
}

const (
	identityFile    = "share.json"
	identityVersion = 1
	identityBytes   = 6
	idBytes         = 16
	// maxRecord is more than any record has, in bytes.
	maxRecord = 64 << 10
)

// Home is the driver's own directory on a share.
type Home struct {
	files *os.Root // of the share
	id    [identityBytes]byte
	key   []byte
}

// identity is share.json. The key makes IDs that follow from a name and cannot be guessed from it.
type identity struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Key     string `json:"key"`
}

// Home returns the driver's directory. It is made only if create says so; else, where there is none, the error is one of
// fs.ErrNotExist.
func (s *Share) Home(create bool) (*Home, error) {
	s.home.Lock()
	defer s.home.Unlock()
	if s.known != nil {
		return s.known, nil
	}
	h, err := openHome(s.files)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err := makeHome(s.files); err != nil {
			return nil, fmt.Errorf("the directory %s could not be made at the root of %s: %w", HomeName, s.Address, err)
		}
		h, err = openHome(s.files)
	}
	if err != nil {
		return nil, err
	}
	s.known = h
	return h, nil
}

func openHome(files *os.Root) (*Home, error) {
	h := &Home{files: files}
	is, err := h.readIdentity()
	if err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(is.ID)
	key, errKey := hex.DecodeString(is.Key)
	if err != nil || errKey != nil || is.Version != identityVersion || len(id) != identityBytes || len(key) < sha256.Size {
		return nil, backends.Errorf(backends.Unavailable, "%s/%s is not as this driver writes it: was it made by a newer one?", HomeName, identityFile)
	}
	h.id, h.key = [identityBytes]byte(id), key
	return h, nil
}

func (h *Home) readIdentity() (is identity, err error) {
	data, err := readSmall(h.files, path.Join(HomeName, identityFile))
	if err != nil {
		return is, err
	}
	if err := json.Unmarshal(data, &is); err != nil {
		return is, backends.Errorf(backends.Unavailable, "%s/%s is damaged: restore it from a backup: %w", HomeName, identityFile, err)
	}
	return is, nil
}

// makeHome makes what is missing. Of several who do so at once one gives the identity, by a link that never replaces.
func makeHome(files *os.Root) error {
	h := &Home{files: files}
	for _, dir := range append([]string{""}, folders()...) {
		if err := files.Mkdir(path.Join(HomeName, dir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	secret := make([]byte, identityBytes+sha256.Size)
	_, _ = rand.Read(secret) // It never fails (crypto/rand).
	data, err := json.Marshal(identity{identityVersion, hex.EncodeToString(secret[:identityBytes]), hex.EncodeToString(secret[identityBytes:])})
	if err != nil {
		return err
	}
	if err := h.WriteNew("", identityFile, data); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Identity tells this share from all others, wherever it is exported.
func (h *Home) Identity() [identityBytes]byte { return h.id }

// Check looks whether the share is still the one that it was. Kinds: Unavailable.
func (h *Home) Check() error {
	is, err := h.readIdentity()
	if err != nil {
		return backends.Errorf(backends.Unavailable, "the share no longer has the driver's %s/%s: does the server export something else? %w", HomeName, identityFile, err)
	}
	if is.ID != hex.EncodeToString(h.id[:]) {
		return backends.Errorf(backends.Unavailable, "the server exports another share than it did: bring back the one with identity %x", h.id)
	}
	return nil
}

// ID makes the ID of what has the name. The same name has the same ID on the same share, so that reserving the
// ID reserves the name; and nobody who cannot read the share can tell the ID.
func (h *Home) ID(kind, name string) string {
	mac := hmac.New(sha256.New, h.key)
	mac.Write([]byte(kind + "\x00" + name))
	return hex.EncodeToString(mac.Sum(nil)[:idBytes])
}

// Random makes a text of hexadecimal digits that nobody has or guesses.
func Random() string {
	text := make([]byte, 8)
	_, _ = rand.Read(text) // It never fails (crypto/rand).
	return hex.EncodeToString(text)
}

func readSmall(files *os.Root, name string) (data []byte, err error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	data, err = io.ReadAll(io.LimitReader(file, maxRecord+1))
	if err == nil && len(data) > maxRecord {
		err = backends.Errorf(backends.Unavailable, "%s has more than %d bytes: no record of this driver does", name, maxRecord)
	}
	return data, err
}
