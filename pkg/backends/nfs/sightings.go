package nfs

import (
	"encoding/json"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// sightings are all items of a kind that were on a share, as texts: the maps and fields of records take several times
// as much memory.
type sightings struct {
	all   []sighted
	bytes int64
}

// sighted is one item.
type sighted struct {
	id, text string
	damaged  bool
}

// sightedBytes is the memory of an item besides its text: the strings, the ID, and the spare room of the list.
const sightedBytes = 128

// add notes an entry, without fields that no list shows, and returns the number of bytes that it takes.
func (s *sightings) add(e entry) (bytes int, err error) {
	r := *e.record
	r.ID, r.Turn, r.Revision, r.OnDelete, r.Permissions, r.Members = "", "", 0, "", 0, nil
	if r.Group != nil {
		r.Group = &membership{Handle: r.Group.Handle}
	}
	text, err := json.Marshal(&r)
	if err != nil {
		return 0, err
	}
	s.all = append(s.all, sighted{e.ID, string(text), e.damage != nil})
	bytes = len(text) + sightedBytes
	s.bytes += int64(bytes)
	return bytes, nil
}

// after returns the items of a share after an ID; all for a limit of 0.
func (s *sightings) after(from string, limit int, on asked, want func(*record) bool) (found []entry, err error) {
	for _, one := range s.all {
		if one.id <= from {
			continue
		}
		r := &record{}
		if err := json.Unmarshal([]byte(one.text), r); err != nil {
			return nil, err
		}
		if r.ID = one.id; !want(r) {
			continue
		}
		if limit > 0 && len(found) >= limit {
			break
		}
		e := entry{place: on.place, record: r, away: on.away}
		if one.damaged {
			e.damage = backends.Errorf(backends.Unusable, "its record was damaged when its share was seen last")
		}
		found = append(found, e)
	}
	return found, nil
}
