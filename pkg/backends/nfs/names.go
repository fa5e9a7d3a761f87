package nfs

import (
	"encoding/hex"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// told is a handle in a record.
type told struct {
	kind kind
	text string
	id   string // empty for another item's handle, whose ID the record does not have
}

// own returns the handles of the record's own item and of its group.
func (r *record) own() []told {
	all := []told{{r.Kind, r.Handle, r.ID}}
	if r.Group != nil {
		all = append(all, told{groupKind, r.Group.Handle, r.Group.ID})
	}
	return all
}

// sources returns the handles of the item's sources.
func (r *record) sources() (all []told) {
	if r.SourceVolume != "" {
		all = append(all, told{kind: volumeKind, text: r.SourceVolume})
	}
	if r.SourceSnapshot != "" {
		all = append(all, told{kind: snapshotKind, text: r.SourceSnapshot})
	}
	for _, of := range r.Members {
		all = append(all, told{kind: volumeKind, text: of.Volume})
	}
	return all
}

// checkHandles refuses handles with another ID than the record's, or of another share. Otherwise anybody who can write
// a record could use it to redirect calls to another volume.
func (r *record) checkHandles(h *share.Home) error {
	for _, t := range append(r.own(), r.sources()...) {
		hd, _, _, ok := decodeHandle(t.kind, t.text)
		switch {
		case !ok:
			return fmt.Errorf("%.128q is no handle of a %s", t.text, t.kind)
		case hd.home != h.Identity():
			return fmt.Errorf("the handle %q is of the share with identity %x, and this one has %x", t.text, hd.home,
				h.Identity())
		case t.id != "" && hd.id != t.id:
			return fmt.Errorf("the handle %q is that of the %s %s, and not of %s", t.text, t.kind, hd.id, t.id)
		}
	}
	return nil
}

// checkPlace refuses a record whose handle names an unknown share. Otherwise a caller that gets this handle would call
// a server of an attacker's choice. The handle's name or address need not be the one by which the share is reached now.
// Kinds: Unusable.
func (e *engine) checkPlace(h *share.Home, r *record) error {
	for _, t := range r.own() {
		_, where, _, _ := decodeHandle(t.kind, t.text)
		if !e.leadsTo(where, h) {
			return backends.Errorf(backends.Unusable,
				"the record of %s %s tells the handle %q, which names the share %s: that is none of the configuration, and none "+
					"that is remembered for this one; if it is another address of %s, name it in the configuration", r.Kind, r.ID,
				t.text, where, h.Address())
		}
	}
	return nil
}

// leadsTo reports whether the share that a handle names can be the one with the home.
func (e *engine) leadsTo(where string, h *share.Home) bool {
	id := h.Identity()
	return h.Address().String() == where || e.known.leads(where, hex.EncodeToString(id[:]))
}
