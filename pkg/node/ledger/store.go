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

// store keeps records in a directory, one file a volume, named after the hash of the volume's handle,
// because a handle is any text and a file name is not. Each line of a file is a record, and the last whole
// line counts. So a change costs one write; nothing that was written is ever overwritten, and whoever is
// killed in the middle of a line leaves the one before it to count. While there is no room for a line the record is in
// the room that was kept, where it outweighs what the file says.
type store struct {
	dir  string
	boot string
	room *spare.Room
}

// longest is how long a file may grow, in bytes, before it is written anew with its last record only.
const longest = 64 << 10

// stem is the part of a file's name that tells the volume.
func stem(volume string) string {
	sum := sha256.Sum256([]byte(volume))
	return hex.EncodeToString(sum[:])
}

func (s store) path(volume string) string { return filepath.Join(s.dir, stem(volume)+recordEnding) }

// save writes a record down whole or not at all; an empty record has no file. It takes the length of the
// volume's file in bytes, 0 when there is none, and returns the new length.
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
		// There is no file yet, or it is long enough, or a part of a line may have got into it.
		err, written = replace(path, line), int64(len(line))
	}
	if failure.IsAny(err, unix.ENOSPC, unix.EDQUOT) && s.room.Put(record.Volume, line) == nil {
		return longest, nil
	}
	if err == nil {
		err = s.room.Drop(record.Volume)
	}
	if err != nil {
		return longest, backends.Errorf(backends.Unavailable, "cannot write the record of volume %q: %w", record.Volume, err)
	}
	return written, nil
}

// extend adds a line to a file that is there.
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

// replace writes beside the file and renames over it: whoever is killed here leaves the old file or the
// new one, and perhaps a temporary file, which the next start removes.
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

// errUnread marks a file that could not be read this time. What it says is not known, and it must not be taken for one
// that says nothing.
var errUnread = errors.New("it could not be read")

// read reads one file and returns its record, and its length for save. A failure other than errOtherBoot and errUnread
// means that the file cannot be used.
func (s store) read(path string) (Record, int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Record{}, 0, fmt.Errorf("%w: %w", errUnread, err)
	}
	length := int64(len(data))
	lines := bytes.SplitAfter(data, []byte{'\n'})
	if torn := lines[len(lines)-1]; len(torn) > 0 {
		length = longest // nothing may be written after a part of a line
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
	// A later version may know more of a volume than this one: what both know counts. One that means something else by a
	// field has another number.
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
