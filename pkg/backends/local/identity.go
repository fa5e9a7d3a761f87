package local

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// The names in the data directory, and the name of the file that makes a directory a pool.
const (
	poolsFolder = "pools" // pools without a path of their own
	knownFolder = "known" // the identity of each pool that was ever opened, by name
	poolFile    = "pool.json"
)

// poolRecord is a pool's identity. The pool has it as pool.json, and the data directory has a copy.
type poolRecord struct {
	Version int      `json:"version"`
	ID      string   `json:"id"`
	Type    poolType `json:"type"`
}

// identify checks that the pool is the same one as before. A pool whose filesystem is not mounted looks like an empty
// directory. To start with that would report every volume as deleted to the orchestrator. Kinds: Unavailable; Invalid
// when its type has changed.
func (p *pool) identify(dataDir string) error {
	known := filepath.Join(dataDir, knownFolder, p.name)
	before, err := readPoolRecord(known)
	if err != nil {
		return err
	}
	own := filepath.Join(p.path, poolFile)
	record, err := readPoolRecord(own)
	if err != nil {
		return err
	}
	switch {
	case record == nil && before != nil:
		return backends.Errorf(backends.Unavailable,
			"%s is empty, and was pool %q before: mount its filesystem, or remove %s to start with an empty pool", p.path,
			p.name, known)
	case record == nil:
		record = &poolRecord{Version: recordVersion, ID: rand.Text(), Type: p.storage.name}
	case before != nil && before.ID != record.ID:
		return backends.Errorf(backends.Unavailable,
			"%s is another pool than %q was before: mount the right filesystem, or remove %s to take this one", p.path, p.name,
			known)
	}
	if record.Type != p.storage.name {
		return backends.Errorf(backends.Invalid,
			"pool %q in %s has type %q, and the configuration says %q: correct the configuration",
			p.name, p.path, record.Type, p.storage.name)
	}
	p.id = record.ID
	return errors.Join(writePoolRecord(own, record), writePoolRecord(known, record))
}

// readPoolRecord returns nil if there is no record.
func readPoolRecord(path string) (*poolRecord, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	record := new(poolRecord)
	if err := decode(data, record); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "%s is damaged; restore it: %w", path, err)
	}
	return record, nil
}

// writePoolRecord writes the record unless the file already has these contents.
func writePoolRecord(path string, record *poolRecord) error {
	data, err := encode(record)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return durable.Replace(path, path+"~", data) // No pool's name has a "~" in it.
}
