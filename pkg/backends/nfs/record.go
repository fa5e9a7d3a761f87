package nfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/params/placeholder"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// recordVersion is the version of the records that this driver writes.
const recordVersion = 1

// suffix is the suffix of records' file names.
const suffix = ".json"

// record holds all that is known of a volume, a snapshot or a group of snapshots. It is in the home's folder volumes,
// snapshots or groups once the item is published, before that in staging, and in trash while the item is being removed.
type record struct {
	Version int    `json:"version"`
	Kind    kind   `json:"kind"`
	ID      string `json:"id"`
	Handle  string `json:"handle"`
	Name    string `json:"name"`
	// Turn identifies the attempt that created this item, among earlier and later ones of the same name.
	Turn string `json:"turn"`
	// Revision grows with each change of the record. So of two records of one item the later is known, whatever the clocks
	// say. It is and stays 0 in records of an earlier version of the driver, which does not know revisions.
	Revision       uint64    `json:"revision,omitempty"`
	CreatedAt      time.Time `json:"createdAt"`
	SizeBytes      int64     `json:"sizeBytes"`
	SourceSnapshot string    `json:"sourceSnapshot,omitempty"`
	SourceVolume   string    `json:"sourceVolume,omitempty"`

	Fingerprint string `json:"fingerprint,omitempty"` // of a volume or a group

	// Of a volume.
	SubDir      string            `json:"subDir,omitempty"` // from the share's root
	OnDelete    string            `json:"onDelete,omitempty"`
	Permissions uint32            `json:"permissions,omitempty"`
	Settings    map[string]string `json:"settings,omitempty"`
	NFSVersion  string            `json:"nfsVersion,omitempty"`

	// Of a snapshot of a group.
	Group *membership `json:"group,omitempty"`

	// Of a group.
	Members []member `json:"members,omitempty"`
}

// key identifies this item among all of the share, including earlier and later ones of its name.
func (r *record) key() string { return r.ID + "-" + r.Turn }

// retained reports whether the data stays in place when the volume is deleted.
func (r *record) retained() bool { return r.Kind == volumeKind && r.OnDelete == retainData }

// folder returns the folder of the records of published items.
func (k kind) folder() string {
	switch k {
	case snapshotKind:
		return share.Snapshots
	case groupKind:
		return share.Groups
	case volumeKind:
	}
	return share.Volumes
}

// part is a piece of a new item: its name in staging, and its place once the record is published, from the share's
// root.
type part struct{ draft, place string }

// parts returns the parts in the order in which they are moved to their places.
func (r *record) parts() []part {
	switch r.Kind {
	case snapshotKind:
		return []part{{r.key(), share.At(share.Snapshots, r.key())}}
	case groupKind:
		var all []part
		for i, of := range r.Members { // A snapshot's record comes after its data: a reader of the record finds the data.
			all = append(all, part{r.draftOf(i), share.At(share.Snapshots, of.ID+"-"+r.Turn)},
				part{r.draftOf(i) + suffix, share.At(share.Snapshots, of.ID+suffix)})
		}
		return all
	case volumeKind:
	}
	return []part{{r.key(), r.SubDir}}
}

// drafts returns the directories in staging that are filled, one for each origin.
func (r *record) drafts() []string {
	if r.Kind != groupKind {
		return []string{r.key()}
	}
	var all []string
	for i := range r.Members {
		all = append(all, r.draftOf(i))
	}
	return all
}

// memberIDs returns the IDs of a group's snapshots.
func (r *record) memberIDs() (ids []string) {
	for _, of := range r.Members {
		ids = append(ids, of.ID)
	}
	return ids
}

// draftOf returns the name of a member's data in staging. It belongs to the group's draft, as do all names that begin
// with the group's key.
func (r *record) draftOf(member int) string { return fmt.Sprintf("%s.m%d", r.key(), member) }

func (r *record) encode() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	return append(data, '\n'), err
}

// decodeRecord decodes a record and checks its fields. Kinds: Unusable.
func decodeRecord(data []byte, where string) (*record, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, backends.Errorf(backends.Unusable, "the record %s is damaged: restore it from a backup: %w", where, err)
	}
	if r.Version > recordVersion {
		return nil, backends.Errorf(backends.Unusable,
			"the record %s has version %d, and this driver knows %d: use the newer driver", where, r.Version, recordVersion)
	}
	if err := r.check(); err != nil {
		return nil, backends.Errorf(backends.Unusable, "the record %s is not as this driver writes it: %w", where, err)
	}
	return &r, nil
}

// isHex reports whether a text consists of the given number of hexadecimal digits.
func isHex(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}

func (r *record) check() error {
	if err := r.checkSizes(); err != nil {
		return err
	}
	switch {
	case r.Kind != volumeKind && r.Kind != snapshotKind && r.Kind != groupKind:
		return fmt.Errorf("kind %q", r.Kind)
	case !isHex(r.ID, 32) || !isHex(r.Turn, 16):
		return fmt.Errorf("ID %q and turn %q", r.ID, r.Turn)
	case r.SizeBytes <= 0:
		return fmt.Errorf("size %d", r.SizeBytes)
	case r.Kind == volumeKind && r.OnDelete != deleteData && r.OnDelete != retainData && r.OnDelete != archiveData:
		return fmt.Errorf("onDelete %q", r.OnDelete)
	case r.Kind == volumeKind:
		return checkSubDir(r.SubDir)
	}
	for _, of := range r.Members { // Their IDs are names of files.
		if !isHex(of.ID, 32) {
			return fmt.Errorf("member ID %.64q", of.ID)
		}
	}
	return nil
}

// read returns a record, and fails with fs.ErrNotExist when there is none. Kinds: Unusable for a file that is no valid
// record.
func read(h *share.Home, folder, name string) (*record, error) {
	data, err := h.Read(folder, name)
	if backends.Is(err, backends.Unusable) {
		return nil, backends.Errorf(backends.Unusable, "the record %s is damaged: restore it from a backup: %w",
			share.At(folder, name), err)
	}
	if err != nil {
		return nil, err
	}
	r, err := decodeRecord(data, share.At(folder, name))
	if err == nil && !r.belongs(folder, name) {
		err = backends.Errorf(backends.Unusable,
			"the record of %s %s was found as %s: somebody has renamed it; give it its name back", r.Kind, r.key(),
			share.At(folder, name))
	}
	if err == nil && folder == r.Kind.folder() { // Handles in other folders are returned to no caller.
		if wrong := r.checkHandles(h); wrong != nil {
			err = backends.Errorf(backends.Unusable, "the record %s is not as this driver writes it: %w", share.At(folder, name),
				wrong)
		}
	}
	return r, err
}

// readSurely is read for callers that act on the absence of a record. The server may have exported something else at
// that moment, such as an empty directory, or the folder may be missing. Kinds: as read; Unavailable when that is so
// still.
func readSurely(h *share.Home, folder, name string) (*record, error) {
	r, err := read(h, folder, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := h.Check(); err != nil {
		return nil, err
	}
	if err := hasFolder(h, folder); err != nil {
		return nil, err
	}
	return read(h, folder, name)
}

// belongs reports whether a record has its own name. In the trash and the burials, buriedAs checks names. An earlier
// version used other names in making.
func (r *record) belongs(folder, name string) bool {
	switch folder {
	case share.Trash, share.Burials, share.Making:
		return true
	case share.Staging:
		return name == r.key()+suffix
	}
	return folder == r.Kind.folder() && name == r.ID+suffix
}

// whole returns the record of an existing item. Kinds: NotFound, once it is certain that this is the right share, and
// that no late deletion has moved the record; Busy for a record that was moved so; Unusable.
func (e *engine) whole(h *share.Home, k kind, id string) (*record, error) {
	return e.placed(h)(present(h, k, id, e.anywhere))
}

// seenByNode is whole for nodes, which change nothing on the share: a record that was moved is NotFound for a moment.
func (e *engine) seenByNode(h *share.Home, id string) (*record, error) {
	return e.placed(h)(present(h, volumeKind, id, inPlace))
}

// placed checks the share in the handle of a record that was read.
func (e *engine) placed(h *share.Home) func(*record, error) (*record, error) {
	return func(r *record, err error) (*record, error) {
		if err == nil {
			err = e.checkPlace(h, r)
		}
		return r, err
	}
}

// present is whole without the check of the share in the record's handle.
func present(h *share.Home, k kind, id string, find lookup) (*record, error) {
	r, err := find(h, k, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, backends.Errorf(backends.NotFound, "there is no such %s", k)
	}
	if err == nil && (r.Kind != k || r.ID != id) {
		err = backends.Errorf(backends.Unusable, "the record of %s %s was found as %s: somebody has renamed it", r.Kind, r.ID,
			id)
	}
	if err != nil {
		return nil, err
	}
	there, err := r.shown(h, find)
	if err == nil && !there {
		err = backends.Errorf(backends.NotFound, "there is no such %s", k)
	}
	return r, err
}

// called is whole by the item's name. Kinds: as whole; Denied for a process that may not read the share's key.
func (e *engine) called(h *share.Home, k kind, name string) (*record, error) {
	id, err := h.ID(string(k), name)
	if err != nil {
		return nil, err
	}
	return e.whole(h, k, id)
}

// checkSubDir refuses a path that is not a plain path below the share, or is the driver's own. Kinds: Invalid.
func checkSubDir(path string) error {
	if err := export.CheckText(path); err != nil {
		return err
	}
	if safepath.Relative(path) != nil {
		return backends.Errorf(backends.Invalid,
			`use a plain path below the share, without ".", ".." and doubled or closing slashes, and short names`)
	}
	for element := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(strings.ToLower(element), share.HomeName) {
			return backends.Errorf(backends.Invalid, "%.64q is the driver's own: use another name",
				secret.Option(element))
		}
	}
	return nil
}

// expandSubDir fills in the templates of subDir. Kinds: Invalid.
func expandSubDir(template string, claim backends.Claim) (string, error) {
	values := map[placeholder.Field]string{
		placeholder.PVCName: claim.Name, placeholder.PVCNamespace: claim.Namespace, placeholder.PVName: claim.Volume,
	}
	return placeholder.Dollar().Fill(template, func(m placeholder.Mark) (string, error) {
		value := values[m.Field]
		switch {
		case m.Field == placeholder.Unknown:
			return "", backends.Errorf(backends.Invalid,
				"subDir has ${%s}: use ${pvc.metadata.name}, ${pvc.metadata.namespace} or ${pv.metadata.name}",
				secret.Option(m.Name))
		case value == "":
			return "", backends.Errorf(backends.Invalid,
				"subDir has ${%s}, and that is not known: run csi-provisioner with --extra-create-metadata", m.Name)
		case safepath.Name(value) != nil || strings.HasPrefix(value, "."):
			return "", backends.Errorf(backends.Invalid, "subDir has ${%s}, which is %.64q: that is no name of a directory",
				m.Name, value)
		}
		return value, nil
	})
}
