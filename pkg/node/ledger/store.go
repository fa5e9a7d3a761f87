package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// version is the form of the files; one of another form is set aside.
const version = 1

// Endings of file names.
const (
	recordEnding = ".json"
	tempEnding   = ".tmp"
	asideEnding  = ".unreadable"
)

// file is a record as it is written down.
type file struct {
	Version int    `json:"version"`
	Boot    string `json:"boot"`
	Record
}

// errOtherBoot marks a record that was written before the machine started.
var errOtherBoot = errors.New("written before the machine last started")

// store keeps records in a directory. A file is named after the hash of the volume's handle, because a
// handle is any text and a file name is not, and after a number that only grows: each record gets a new
// name, and the highest number counts. That renaming never replaces a file matters: ext4 writes the data
// out at once when it does (ext4(5), auto_da_alloc), which takes ten times as long and is of no use here.
type store struct {
	dir    string
	boot   string
	number atomic.Uint64 // the last one used
}

// stem is the part of a file's name that tells the volume.
func stem(volume string) string {
	sum := sha256.Sum256([]byte(volume))
	return hex.EncodeToString(sum[:])
}

func (s *store) next(volume string) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s.%016x%s", stem(volume), s.number.Add(1), recordEnding))
}

// save writes a record down whole or not at all, then removes the file of the one before; an empty
// record has no file. It returns the path of the new file.
func (s *store) save(record Record, before string) (path string, err error) {
	if !record.Empty() {
		if path, err = s.write(record); err != nil {
			return "", backends.Errorf(backends.Unavailable, "cannot write the record of volume %q: %w", record.Volume, err)
		}
	}
	if before == "" {
		return path, nil
	}
	// With a newer file in place the old one counts no more, and the next start removes it.
	if err := os.Remove(before); err != nil && path == "" && !errors.Is(err, fs.ErrNotExist) {
		return "", backends.Errorf(backends.Unavailable, "cannot remove the record of volume %q: %w", record.Volume, err)
	}
	return path, nil
}

// write writes beside the file and renames: whoever is killed here leaves no record or a whole one, and
// perhaps a temporary file, which the next start removes.
func (s *store) write(record Record) (path string, err error) {
	data, err := json.Marshal(file{Version: version, Boot: s.boot, Record: record})
	if err != nil {
		return "", err
	}
	path = s.next(record.Volume)
	temp := path + tempEnding
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return "", errors.Join(err, removeIfThere(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return "", errors.Join(err, removeIfThere(temp))
	}
	return path, nil
}

// read reads one file. A failure other than errOtherBoot means that the file cannot be used.
func (s *store) read(path string) (Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Record{}, err
	}
	var found file
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&found); err != nil {
		return Record{}, fmt.Errorf("not a record: %w", err)
	}
	switch {
	case found.Version != version:
		return Record{}, fmt.Errorf("its version is %d: only %d is known", found.Version, version)
	case !strings.HasPrefix(filepath.Base(path), stem(found.Volume)+"."):
		return Record{}, fmt.Errorf("it is of volume %q, whose record has another name", found.Volume)
	case found.Boot != s.boot:
		return Record{}, errOtherBoot
	case found.Empty():
		return Record{}, errors.New("it says nothing")
	}
	return found.Record, nil
}

// numberOf returns the number in a file's name.
func numberOf(path string) (number uint64, ok bool) {
	_, err := fmt.Sscanf(filepath.Ext(strings.TrimSuffix(path, recordEnding)), ".%016x", &number)
	return number, err == nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
