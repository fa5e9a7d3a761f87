package orphan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// kind is a kind of difference, and a label of metrics.
type kind string

const (
	leaked     kind = "leaked"
	missing    kind = "missing"
	dangling   kind = "dangling"
	foreign    kind = "foreign"
	unattached kind = "unattached"
	stranded   kind = "stranded"
)

// kinds returns all kinds, so that metrics without differences are 0 and not absent.
func kinds() []kind { return []kind{leaked, missing, dangling, foreign, unattached, stranded} }

// difference is one difference between the storage and Kubernetes. It is comparable, and equal in each sweep.
type difference struct {
	kind   kind
	handle string
	node   string // its name, or its ID in the storage if the cluster has no such node
	object string // the name of the PersistentVolume or VolumeAttachment, if any
}

// attachment holds the fields of a VolumeAttachment. Without a handle its PersistentVolume is gone.
type attachment struct {
	name, handle, node string
	attached           bool // attached and not being deleted
}

// world is the data that one sweep has read.
type world struct {
	driver string
	// names by handle of the PersistentVolumes that must have a volume, read before the storage
	expected    map[string]string
	named       map[string]string // names by handle of all PersistentVolumes, read after the storage
	stored      []csiclient.Listed
	slots       map[string]string // sets by the name of their open slots; read only if leaked volumes are deleted
	listsNodes  bool              // the storage lists where volumes are attached
	attachments []attachment
	nodes       map[string][]string // names by the driver's ID of a node; a renamed node has two
}

// believable fails if the storage's list cannot be that of this cluster's volumes.
func (w world) believable() error {
	gone, stored := 0, w.handles()
	for handle := range w.both() {
		if !stored[handle] {
			gone++
		}
	}
	if known := len(w.both()); gone > 1 && gone > known/2 {
		return fmt.Errorf("the storage lists %d volumes, and lacks %d of the %d that PersistentVolumes name: its list "+
			"proves nothing. "+
			"Look at the driver's credentials and configuration", len(stored), gone, known)
	}
	return nil
}

func (w world) handles() map[string]bool {
	handles := make(map[string]bool, len(w.stored))
	for _, volume := range w.stored {
		handles[volume.Handle] = true
	}
	return handles
}

// both returns the PersistentVolumes that existed before and after the storage was read.
func (w world) both() map[string]string {
	both := maps.Clone(w.expected)
	maps.DeleteFunc(both, func(handle, _ string) bool { return w.named[handle] == "" })
	return both
}

// compare returns all differences, ordered.
func (w world) compare() (found []difference) {
	stored := w.handles()
	for handle, name := range w.both() {
		if !stored[handle] {
			found = append(found, difference{kind: missing, handle: handle, object: name})
		}
	}
	for handle := range stored {
		if w.isLeaked(handle) {
			found = append(found, difference{kind: leaked, handle: handle})
		}
	}
	if w.listsNodes {
		found = append(found, w.compareAttachments(stored)...)
	}
	slices.SortFunc(found, func(a, b difference) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.handle, b.handle), cmp.Compare(a.node, b.node))
	})
	return found
}

// isLeaked reports whether no PersistentVolume named the volume before or after the storage was read.
func (w world) isLeaked(handle string) bool { return w.expected[handle] == "" && w.named[handle] == "" }

// place is a volume on a node.
type place struct{ handle, node string }

func (w world) compareAttachments(stored map[string]bool) (found []difference) {
	registered := w.registered()
	known, away := make(map[place]bool, len(w.attachments)), map[string]bool{}
	for _, a := range w.attachments {
		known[place{a.handle, a.node}] = true
		away[a.handle] = away[a.handle] || !registered[a.node]
	}
	actual := map[place]bool{}
	for _, volume := range w.stored {
		for _, id := range volume.Nodes {
			for _, name := range w.nodes[id] {
				actual[place{volume.Handle, name}] = true
			}
			if d := w.compareAttached(volume.Handle, id, known, away[volume.Handle]); d.kind != "" {
				found = append(found, d)
			}
		}
	}
	for _, a := range w.attachments {
		if a.attached && registered[a.node] && stored[a.handle] && !actual[place{a.handle, a.node}] {
			found = append(found, difference{kind: unattached, handle: a.handle, node: a.node, object: a.name})
		}
	}
	return found
}

// compareAttached compares one attachment in the storage with the places that VolumeAttachments name. Without a
// difference it returns one with an empty kind. It does so too if the machine may be a node whose driver is not
// registered, for example during an update.
func (w world) compareAttached(handle, id string, known map[place]bool, isAway bool) difference {
	names := w.nodes[id]
	isKnown := func(name string) bool { return known[place{handle, name}] }
	d := difference{handle: handle, object: w.named[handle]}
	switch bare := w.bareAttachment(handle, names); {
	case slices.ContainsFunc(names, isKnown):
	case bare != nil:
		d.kind, d.node, d.object = stranded, bare.node, bare.name
	case len(names) > 0:
		d.kind, d.node = dangling, strings.Join(names, " or ")
	case !isAway:
		d.kind, d.node = foreign, id
	}
	return d
}

// bareAttachment returns the VolumeAttachment of a volume on one of the nodes if its PersistentVolume is gone. It is
// recognized by its name, which is derived from the volume's handle.
func (w world) bareAttachment(handle string, nodes []string) *attachment {
	for i, a := range w.attachments {
		if a.handle == "" && slices.Contains(nodes, a.node) && a.name == attachmentName(w.driver, handle, a.node) {
			return &w.attachments[i]
		}
	}
	return nil
}

// memory holds the time since which each difference has been seen.
type memory map[difference]time.Time

// confirm returns the differences that the previous sweep has seen, too, the leaked ones only after the grace, and
// forgets all that no longer exist.
func (m memory) confirm(found []difference, now time.Time, grace time.Duration) (confirmed []difference) {
	seen := make(map[difference]bool, len(found))
	for _, d := range found {
		seen[d] = true
		since, known := m[d]
		switch {
		case !known:
			m[d] = now
		case d.kind != leaked || now.Sub(since) >= grace:
			confirmed = append(confirmed, d)
		}
	}
	maps.DeleteFunc(m, func(d difference, _ time.Time) bool { return !seen[d] })
	return confirmed
}

// interrupt forgets all differences except leaked volumes, so that two consecutive sweeps must see them again. Leaked
// volumes are kept because a sweep may well fail within a week.
func (m memory) interrupt() {
	maps.DeleteFunc(m, func(d difference, _ time.Time) bool { return d.kind != leaked })
}

// registered returns the nodes that run the driver now.
func (w world) registered() map[string]bool {
	names := map[string]bool{}
	for _, of := range w.nodes {
		for _, name := range of {
			names[name] = true
		}
	}
	return names
}

// id returns the driver's ID of a node, or "" if the node has none or shares it with another node.
func (w world) id(node string) string {
	for id, names := range w.nodes {
		if len(names) == 1 && names[0] == node {
			return id
		}
	}
	return ""
}
