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

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/rawfile"
	"github.com/stowage-csi/stowage/pkg/spare"
)

// version is the format of the files. A file of another format is set aside.
const version = 1

// Endings of file names.
const (
	recordEnding = ".json"
	tempEnding   = ".tmp"
	asideEnding  = ".unreadable"
)

// file is a record as stored.
type file struct {
	Version int    `json:"version"`
	Boot    string `json:"boot"`
	Record
}

// errOtherBoot marks a record that was written before the machine booted.
var errOtherBoot = errors.New("written before the machine last started")

// store keeps records in a directory, one file per volume. The file is named after the hash of the volume's handle,
// because a handle is arbitrary text. Each line of a file is a record, and the last complete line counts. So a change
// costs one write, nothing is ever overwritten, and a kill in the middle of a line leaves the line before it valid.
// While the disk has no room for a line, the record is in the spare room, where it takes precedence over the file.
type store struct {
	dir  string
	boot string
	room *spare.Room
}

// longest is the length in bytes at which a file is rewritten with its last record only.
const longest = 64 << 10

// stem returns the part of a file's name that identifies the volume.
func stem(volume string) string {
	sum := sha256.Sum256([]byte(volume))
	return hex.EncodeToString(sum[:])
}

func (s store) path(volume string) string { return filepath.Join(s.dir, stem(volume)+recordEnding) }

// save writes a record completely or not at all; an empty record has no file. It takes the length of the volume's file
// in bytes, 0 for no file, and returns the new length.
func (s store) save(record Record, length int64) (int64, error) {
	path := s.path(record.Volume)
	if record.Empty() {
		if err := errors.Join(removeIfThere(path), s.room.Drop(record.Volume)); err != nil {
			return length, backends.Errorf(backends.Unavailable, "cannot remove the record of volume %q: %w", record.Volume, err)
		}
		return 0, nil
	}
	line, err := json.Marshal(file{Version: version, Boot: s.boot, Record: record})
	if err != nil {
		return length, backends.Errorf(backends.Unknown, "cannot encode the record of volume %q: %w", record.Volume, err)
	}
	line = append(line, '\n')
	written := length + int64(len(line))
	if length <= 0 || length >= longest || extend(path, line) != nil {
		// There is no file yet, or it is too long, or part of a line may have been written to it.
		err, written = replace(path, line), int64(len(line))
	}
	if failure.IsAny(err, unix.ENOSPC, unix.EDQUOT) {
		kept := s.room.Put(record.Volume, line)
		if kept == nil {
			return longest, nil
		}
		err = fmt.Errorf("%w; %w", err, kept)
	}
	if err == nil {
		err = s.room.Drop(record.Volume)
	}
	if err != nil {
		return longest, backends.Errorf(backends.Unavailable, "cannot write the record of volume %q: %w", record.Volume, err)
	}
	return written, nil
}

// extend appends a line to an existing file.
func extend(path string, line []byte) error {
	return write(path, os.O_APPEND, line)
}

func write(path string, flags int, line []byte) error {
	file, err := rawfile.Open(path, os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	return errors.Join(err, file.Close())
}

// replace writes a temporary file and renames it over the file. A kill leaves the old file or the new one, and perhaps
// the temporary file, which the next start removes.
func replace(path string, line []byte) error {
	temp := path + tempEnding
	if err := write(temp, os.O_CREATE|os.O_TRUNC, line); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	return nil
}

// errUnread marks a file that could not be read this time. Its contents are unknown, so it must not be treated as
// empty.
var errUnread = errors.New("it could not be read")

// read reads one file and returns its record, and its length for save. An error other than errOtherBoot and errUnread
// means that the file is invalid.
func (s store) read(path string) (Record, int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Record{}, 0, fmt.Errorf("%w: %w", errUnread, err)
	}
	length := int64(len(data))
	lines := bytes.SplitAfter(data, []byte{'\n'})
	if torn := lines[len(lines)-1]; len(torn) > 0 {
		length = longest // nothing may be appended to part of a line
	}
	if len(lines) < 2 {
		return Record{}, 0, errors.New("it holds no whole line")
	}
	record, err := s.decode(path, lines[len(lines)-2])
	return record, length, err
}

// decode reads one line of a file.
func (s store) decode(path string, line []byte) (Record, error) {
	var found file
	// A later version may know more about a volume than this one: the fields known to both count. A version that changes
	// the meaning of a field has another number.
	if err := json.Unmarshal(line, &found); err != nil {
		return Record{}, fmt.Errorf("not a record: %w", err)
	}
	switch {
	case found.Version != version:
		return Record{}, fmt.Errorf("its version is %d: only %d is known", found.Version, version)
	case s.path(found.Volume) != path:
		return Record{}, fmt.Errorf("it is of volume %q, whose record has another name", found.Volume)
	case found.Boot != s.boot:
		return Record{}, errOtherBoot
	case found.Empty():
		return Record{}, errors.New("it says nothing")
	}
	return found.Record, nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
