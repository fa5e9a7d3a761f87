package ec2

import (
	"maps"
	"time"
)

// snapshot is a version of a snapshot. A version in the store is never changed.
type snapshot struct {
	id, volume, state string
	description       string
	size              int // GiB
	encrypted         bool
	began             time.Time
	tags              map[string]string
	content           string
	fast              []string // zones with fast restore
	lock              lock
}

// lock protects a snapshot from deletion; the zero value does not.
type lock struct {
	mode          string
	since, until  time.Time
	days, coolOff int
}

func (s *Server) createSnapshot(p *params) effect {
	id, description, tags := p.id("VolumeId", "vol"), p.text("Description"), p.tagsFor("snapshot")
	return func() (any, *fault) {
		v, f := s.volume(id)
		switch {
		case f != nil:
			return nil, f
		case v.state != "available" && v.state != "in-use":
			return nil, faultf("IncorrectState", "The volume '%s' is in state %s", id, v.state)
		}
		there := s.snapshots.all()
		if s.config.MaxSnapshots > 0 && len(there) >= s.config.MaxSnapshots {
			return nil, faultf("SnapshotLimitExceeded", "Maximum number of snapshots (%d) exceeded.", s.config.MaxSnapshots)
		}
		for _, other := range there {
			if other.volume == id && s.now.Sub(other.began) < s.config.SnapshotInterval {
				return nil, faultf("SnapshotCreationPerVolumeRateExceeded",
					"The maximum per volume CreateSnapshot request rate has been exceeded.")
			}
		}
		made := snapshot{
			id: s.newID("snap"), volume: id, state: "pending", description: description, size: v.size, encrypted: v.encrypted,
			began: s.now, tags: tags, content: v.content,
		}
		s.snapshots.put(made.id, s.now, &made)
		s.after(s.config.Snapshot, "pending", func() {
			if n := s.snapshots.now(made.id); n != nil && n.state == "pending" {
				s.changeSnapshot(made.id, func(n *snapshot) { n.state = "completed" })
			}
		})
		return createSnapshotResponse{snapshotXML: made.xml()}, nil
	}
}

func (s *Server) changeSnapshot(id string, edit func(n *snapshot)) {
	n := *s.snapshots.now(id)
	n.tags = maps.Clone(n.tags)
	edit(&n)
	s.snapshots.put(id, s.now, &n)
}

// snapshot returns a snapshot that exists and is known everywhere.
func (s *Server) snapshot(id string) (*snapshot, *fault) {
	if n := s.snapshots.now(id); n != nil && s.spread(n.began) {
		return n, nil
	}
	return nil, faultf("InvalidSnapshot.NotFound", "The snapshot '%s' does not exist.", id)
}

// usable returns a snapshot from which volumes can be created.
func (s *Server) usable(id string) (*snapshot, *fault) {
	n, f := s.snapshot(id)
	switch {
	case f != nil:
		return nil, f
	case n.state != "completed":
		return nil, faultf("IncorrectState", "Snapshot is in invalid state - %s", n.state)
	}
	return n, nil
}

func (s *Server) deleteSnapshot(p *params) effect {
	id := p.id("SnapshotId", "snap")
	return func() (any, *fault) {
		n, f := s.snapshot(id)
		switch {
		case f != nil:
			return nil, f
		case n.lock.until.After(s.now):
			return nil, faultf("OperationNotPermitted", "The snapshot '%s' is locked.", id)
		}
		s.snapshots.put(id, s.now, nil)
		return done("DeleteSnapshot"), nil
	}
}
