package nfs

import (
	"encoding/hex"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// told is a handle that a record tells.
type told struct {
	kind kind
	text string
	id   string // empty where it is another thing's, whose ID the record does not have
}

// own are the handles that are given out for what a record speaks of.
func (r *record) own() []told {
	all := []told{{r.Kind, r.Handle, r.ID}}
	if r.Group != nil {
		all = append(all, told{groupKind, r.Group.Handle, r.Group.ID})
	}
	return all
}

// sources are the handles of what something was made from.
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

// checkHandles refuses handles that are not of the record's own ID, or are of another share. Whoever can write a record
// would have others call for another volume by it.
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

// checkPlace refuses a record whose handle names a share that nobody knows: whoever is given it would ask a server of
// somebody else's choice. It need not be the name or address by which the share is reached now. Kinds: Unusable.
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
