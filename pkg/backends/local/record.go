package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// recordVersion is the version of all records that this package writes.
const recordVersion = 1

// errNewer says that a record was written by a newer version of the driver. It differs from the errors of unreadable
// records, because the record is fine.
var errNewer = errors.New("it was written by a newer version of this driver: use that version again")

// volumeRecord is the record of a volume, in record.json.
type volumeRecord struct {
	Version   int       `json:"version"`
	Handle    string    `json:"handle"`
	Name      string    `json:"name"`
	Type      poolType  `json:"type"`
	SizeBytes int64     `json:"sizeBytes"`
	CreatedAt time.Time `json:"createdAt"`
	// ExpandingFromBytes is the old size of an image that is being grown to SizeBytes; 0 otherwise.
	ExpandingFromBytes int64             `json:"expandingFromBytes,omitempty"`
	Allocation         string            `json:"allocation"`
	OnDelete           string            `json:"onDelete"`
	ReadAheadKiB       int               `json:"readAheadKiB,omitempty"`
	Fingerprint        string            `json:"fingerprint,omitempty"`
	Settings           map[string]string `json:"settings,omitempty"`
	SourceSnapshot     string            `json:"sourceSnapshot,omitempty"`
	SourceVolume       string            `json:"sourceVolume,omitempty"`
	// Raw says that the volume was created as a raw device: its contents are never mounted.
	Raw bool `json:"raw,omitempty"`
	// Project is the project whose quota bounds a directory; 0 for an unbounded directory.
	Project uint32 `json:"project,omitempty"`
}

// snapshotRecord is the record of a snapshot, in record.json or in its group's.
type snapshotRecord struct {
	Version   int       `json:"version"`
	Handle    string    `json:"handle"`
	Name      string    `json:"name"`
	Type      poolType  `json:"type"`
	SizeBytes int64     `json:"sizeBytes"`
	CreatedAt time.Time `json:"createdAt"`
	Volume    string    `json:"volume"`
	Raw       bool      `json:"raw,omitempty"` // as of its volume
}

// groupRecord is the record of a group of snapshots, in record.json.
type groupRecord struct {
	Version     int              `json:"version"`
	Handle      string           `json:"handle"`
	Name        string           `json:"name"`
	CreatedAt   time.Time        `json:"createdAt"`
	Fingerprint string           `json:"fingerprint,omitempty"`
	Members     []snapshotRecord `json:"members"`
}

// encode renders a record in a form that people can read, too.
func encode(record any) ([]byte, error) {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("the record could not be encoded: %w", err)
	}
	return append(data, '\n'), nil
}

// decode parses a record and refuses anything that encode would not have written. It fails with errNewer for a record
// of a later version.
func decode(data []byte, record any) error {
	var header struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &header); err != nil {
		return fmt.Errorf("the record is not JSON: %w", err)
	}
	if header.Version > recordVersion {
		return fmt.Errorf("the record has version %d: %w", header.Version, errNewer)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(record); err != nil {
		return fmt.Errorf("the record is not as it was written: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the record")
	}
	return nil
}

// check checks that the record is valid for the volume with the handle, in a pool of the type.
func (r *volumeRecord) check(handle string, want poolType) error {
	if err := checkRecord(r.Version, r.Handle, handle, handleOf(volumePrefix, r.Name)); err != nil {
		return err
	}
	if r.Type != want || r.SizeBytes <= 0 || r.ExpandingFromBytes < 0 || r.ExpandingFromBytes > r.SizeBytes {
		return fmt.Errorf("the record says type %q and size %d, which is wrong in a pool of type %q", r.Type, r.SizeBytes,
			want)
	}
	return r.checkParameters()
}

// checkParameters checks that the volume can have its parameters. Kinds: Invalid.
func (r *volumeRecord) checkParameters() error {
	if r.Allocation != sparse && r.Allocation != full {
		return backends.Errorf(backends.Invalid, "allocation is %q: use sparse or full", r.Allocation)
	}
	if r.OnDelete != deleteData && r.OnDelete != retainData {
		return backends.Errorf(backends.Invalid, "onDelete is %q: use delete or retain", r.OnDelete)
	}
	if r.ReadAheadKiB < 0 {
		return backends.Errorf(backends.Invalid, "readAheadKiB is %d: use 0 or more", r.ReadAheadKiB)
	}
	storage := r.Type.storage()
	if r.Allocation == full && !storage.preallocates {
		return backends.Errorf(backends.Invalid,
			"allocation is \"full\" in a pool of type %s: leave it out, or use a pool of type image", storage.name)
	}
	if r.ReadAheadKiB != 0 && !storage.device {
		return backends.Errorf(backends.Invalid,
			"readAheadKiB is set in a pool of type %s: leave it out, or use a pool of type image", storage.name)
	}
	return nil
}

// check checks that the record is valid for the snapshot with the handle.
func (r *snapshotRecord) check(handle string, want poolType) error {
	if err := checkRecord(r.Version, r.Handle, handle, handleOf(snapshotPrefix, r.Name)); err != nil {
		return err
	}
	return r.checkContents(want)
}

func (r *snapshotRecord) checkContents(want poolType) error {
	if r.Type != want || r.SizeBytes <= 0 || !isHandle(volumePrefix, r.Volume) {
		return fmt.Errorf("the record says type %q, size %d and volume %q, which is wrong in a pool of type %q",
			r.Type, r.SizeBytes, r.Volume, want)
	}
	return nil
}

// check checks that the record is valid for the group with the handle.
func (r *groupRecord) check(handle string, want poolType) error {
	if err := checkRecord(r.Version, r.Handle, handle, handleOf(groupPrefix, r.Name)); err != nil {
		return err
	}
	if len(r.Members) == 0 {
		return errors.New("the record names no members")
	}
	for i := range r.Members {
		m := &r.Members[i]
		if err := checkRecord(m.Version, m.Handle, memberHandle(handle, i), m.Handle); err != nil {
			return err
		}
		if err := m.checkContents(want); err != nil {
			return err
		}
	}
	return nil
}

// checkRecord checks a record's version, and that its handle is that of its entry and that of its name.
func checkRecord(version int, says, found, derived string) error {
	if version != recordVersion {
		return fmt.Errorf("the record has version %d: there is only version %d", version, recordVersion)
	}
	if says != found || says != derived {
		return fmt.Errorf("the record is that of %q, and was found as %q", says, found)
	}
	return nil
}

// checkName refuses names that a record cannot hold. Kinds: Invalid.
func checkName(name string) error {
	if name == "" || !utf8.ValidString(name) {
		return backends.Errorf(backends.Invalid, "the name is %q: use UTF-8 text that is not empty", name)
	}
	return nil
}
