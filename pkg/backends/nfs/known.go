package nfs

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
)

// knownFile is where the shares are noted in the data directory.
const knownFile = "shares.json"

// known are the shares that have been used, for enumerations: a share that nobody names cannot be asked what is on it.
// It is a note to help memory, not a record: what it lacks is found by its handle all the same.
type known struct {
	path string
	log  *slog.Logger

	mu  sync.Mutex
	all map[string]place
}

// place is a share as a handle names it.
type place struct {
	export.Address
	Name string // in the configuration
}

func (p place) key() string { return handle{address: p.Address, share: p.Name}.where() }

func openKnown(dataDir string, named map[string]export.Address, log *slog.Logger) (*known, error) {
	k := &known{path: filepath.Join(dataDir, knownFile), log: log, all: map[string]place{}}
	data, err := os.ReadFile(k.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var places []place
	if err == nil && json.Unmarshal(data, &places) != nil {
		log.Warn("the note of known shares is damaged and is dropped", "path", k.path)
	}
	for _, p := range places {
		if p.Name == "" {
			k.all[p.key()] = p
		}
	}
	for name, address := range named {
		p := place{address, name}
		k.all[p.key()] = p
	}
	return k, nil
}

// add notes a share that is used.
func (k *known) add(p place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.all[p.key()]; ok {
		return
	}
	k.all[p.key()] = p
	if err := k.save(); err != nil {
		k.log.Warn("a share could not be noted: after a restart it is enumerated once it is used again", "share", p.key(), "error", err)
	}
}

func (k *known) save() error {
	data, err := json.Marshal(slices.Collect(maps.Values(k.all)))
	if err != nil {
		return err
	}
	draft := k.path + ".new"
	if err := os.WriteFile(draft, data, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, k.path)
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
