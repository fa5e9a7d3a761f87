package nfs

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// knownFile is the file with the note of shares in the data directory.
const knownFile = "shares.json"

// known holds the shares that have been used, for enumerations, which cannot ask a share that is named nowhere. It is
// only a note: items on a share that it lacks are still found by their handles. It also says where a share has been, so
// that an empty directory in its place does not become another share: a loss of power must not lose that.
type known struct {
	path string
	log  *slog.Logger

	mu  sync.Mutex
	all map[string]place
	// barred are noted shares that the configuration does not allow now, or has under another name. They are kept for a
	// later configuration, and for records whose handles name them.
	barred map[string]place
	homes  map[string]string // the identities of shares, in hexadecimal digits, by their names and by their addresses
	// met are the shares on which this process has created an item, or has found one by its name or its handle, by their
	// addresses. They are not noted.
	met map[string]homeID
}

// noted is a share in the note.
type noted struct {
	place
	Home string `json:"home,omitempty"`
}

// place is a share as a handle names it.
type place struct {
	export.Address
	Name string // in the configuration
}

func (p place) key() string { return handle{address: p.Address, share: p.Name}.where() }

// openKnown reads the note. A noted share that allowed refuses is neither enumerated nor cleaned up.
func openKnown(dataDir string, named map[string]export.Address, allowed func(export.Address) bool,
	log *slog.Logger) (*known, error) {
	k := &known{path: filepath.Join(dataDir, knownFile), log: log, all: map[string]place{}, barred: map[string]place{},
		homes: map[string]string{}, met: map[string]homeID{}}
	data, err := os.ReadFile(k.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var places []noted
	if err == nil && json.Unmarshal(data, &places) != nil {
		log.Warn("the note of known shares is damaged and is dropped", "path", k.path)
	}
	for _, p := range places {
		k.identify(p.place, p.Home)
		switch {
		case p.Name == "" && allowed(p.Address):
			k.all[p.key()] = p.place
		default:
			k.barred[p.key()] = p.place
		}
	}
	for name, address := range named {
		p := place{address, name}
		k.all[p.key()] = p
		delete(k.barred, p.key())
	}
	return k, nil
}

// identify notes the identity of the share at a place.
func (k *known) identify(p place, home string) {
	if home != "" {
		k.homes[p.key()], k.homes[p.String()] = home, home
	}
}

// used reports whether the driver has used a share at a place.
func (k *known) used(p place) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.homes[p.key()] != "" || k.homes[p.String()] != ""
}

// agrees refuses a share with another identity than that of the earlier share at the place, whose items are not gone.
// Kinds: Unavailable.
func (k *known) agrees(p place, id homeID) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if before := k.homes[p.key()]; before != "" && before != hex.EncodeToString(id[:]) {
		return backends.Errorf(backends.Unavailable,
			"the share %s has the identity %x, and had %s: does the server export something else, or was %s/share.json copied "+
				"there? Bring the share back; if it was replaced on purpose, remove %s and start the controller anew",
			p.key(), id, before, share.HomeName, k.path)
	}
	return nil
}

// leads reports whether the share that a handle names is configured or noted, and can be the one with the identity. If
// its identity is known, that decides.
func (k *known) leads(where, home string) bool {
	k.mu.Lock()
	was := k.homes[where]
	k.mu.Unlock()
	if was != "" {
		return was == home
	}
	return slices.ContainsFunc(k.everywhere(), func(p place) bool { return p.key() == where || p.String() == where })
}

// add notes a share that is used, with its identity.
func (k *known) add(p place, id homeID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	home := hex.EncodeToString(id[:])
	if _, ok := k.all[p.key()]; ok && k.homes[p.key()] == home {
		return
	}
	k.all[p.key()] = p
	k.identify(p, home)
	if err := k.save(); err != nil {
		k.log.Warn("a share could not be noted: after a restart it is enumerated once it is used again", "share", p.key(),
			"error", err)
	}
}

// has reports whether a share is enumerated.
func (k *known) has(p place) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.all[p.key()]
	return ok
}

func (k *known) save() error {
	var places []noted
	both := maps.Clone(k.barred)
	maps.Copy(both, k.all)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		places = append(places, noted{both[key], k.homes[key]})
	}
	data, err := json.Marshal(places)
	if err != nil {
		return err
	}
	return durable.Replace(k.path, k.path+".new", data)
}

// everywhere returns all shares that may hold records, including those that the configuration does not allow now.
func (k *known) everywhere() []place {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Values(k.all)), maps.Values(k.barred))
}

// sorted returns the shares in the order of their names.
func (k *known) sorted() []place {
	k.mu.Lock()
	defer k.mu.Unlock()
	var places []place
	for _, key := range slices.Sorted(maps.Keys(k.all)) {
		places = append(places, k.all[key])
	}
	return places
}
