package orphan

import (
	"slices"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// agreed returns a world without differences: a is attached to node one, and b is not attached.
func agreed() world {
	return world{
		driver:   "d",
		expected: map[string]string{"a": "pv-a", "b": "pv-b"}, named: map[string]string{"a": "pv-a", "b": "pv-b"},
		stored: []csiclient.Listed{{Handle: "a", Nodes: []string{"id-1"}}, {Handle: "b"}}, listsNodes: true,
		attachments: []attachment{{name: "va-a", handle: "a", node: "one", attached: true}},
		nodes:       map[string][]string{"id-1": {"one"}, "id-2": {"two"}},
	}
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   []difference
	}{
		"all agree": {func(*world) {}, nil},
		"a volume without a PersistentVolume": {
			func(w *world) { w.stored = append(w.stored, csiclient.Listed{Handle: "c"}) },
			[]difference{{kind: leaked, handle: "c"}},
		},
		"a PersistentVolume without a volume": {
			func(w *world) { w.stored = w.stored[:1] },
			[]difference{{kind: missing, handle: "b", object: "pv-b"}},
		},
		"created after the storage was read": {func(w *world) { w.named["c"] = "pv-c" }, nil},
		"deleted while the storage was read": {func(w *world) { delete(w.named, "b"); w.stored = w.stored[:1] }, nil},
		"attached without a VolumeAttachment": {
			func(w *world) { w.stored[1].Nodes = []string{"id-2"} },
			[]difference{{kind: dangling, handle: "b", node: "two", object: "pv-b"}},
		},
		"attached to a second node, the first is known": {
			func(w *world) { w.stored[0].Nodes = []string{"id-1", "id-2"} },
			[]difference{{kind: dangling, handle: "a", node: "two", object: "pv-a"}},
		},
		"attached to a machine that is no node": {
			func(w *world) { w.stored[1].Nodes = []string{"rescue"} },
			[]difference{{kind: foreign, handle: "b", node: "rescue", object: "pv-b"}},
		},
		"a VolumeAttachment that is not attached at the storage": {
			func(w *world) { w.stored[0].Nodes = nil },
			[]difference{{kind: unattached, handle: "a", node: "one", object: "va-a"}},
		},
		"attached to a machine that has two names, one is known": {
			func(w *world) { w.nodes["id-1"] = []string{"one", "one-renamed"} }, nil,
		},
		"attached to a machine that has two names, none is known": {
			func(w *world) { w.stored[1].Nodes, w.nodes["id-2"] = []string{"id-2"}, []string{"two", "two-renamed"} },
			[]difference{{kind: dangling, handle: "b", node: "two or two-renamed", object: "pv-b"}},
		},
		"the driver of a node is being updated": {func(w *world) { delete(w.nodes, "id-1") }, nil},
		"the driver of a node is being updated, and another volume is elsewhere": {
			func(w *world) { delete(w.nodes, "id-1"); w.stored[1].Nodes = []string{"rescue"} },
			[]difference{{kind: foreign, handle: "b", node: "rescue", object: "pv-b"}},
		},
		"a VolumeAttachment whose PersistentVolume is gone": {func(w *world) {
			name := attachmentName("d", "a", "one")
			w.attachments = []attachment{{name: name, node: "one", attached: true}}
			delete(w.named, "a")
		}, []difference{{kind: stranded, handle: "a", node: "one", object: attachmentName("d", "a", "one")}}},
		"a VolumeAttachment whose PersistentVolume is gone, of another volume": {func(w *world) {
			w.attachments = append(w.attachments, attachment{name: attachmentName("d", "c", "two"), node: "two"})
			w.stored[1].Nodes = []string{"id-2"}
		}, []difference{{kind: dangling, handle: "b", node: "two", object: "pv-b"}}},
		"a VolumeAttachment that is still being attached": {func(w *world) {
			w.stored[0].Nodes = nil
			w.attachments[0].attached = false
		}, nil},
		"a storage that does not list nodes": {func(w *world) { w.stored[0].Nodes = nil; w.listsNodes = false },
			nil},
		"leaked and attached": {
			func(w *world) { w.stored = append(w.stored, csiclient.Listed{Handle: "c", Nodes: []string{"id-2"}}) },
			[]difference{{kind: dangling, handle: "c", node: "two"}, {kind: leaked, handle: "c"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := agreed()
			c.change(&w)
			if have := w.compare(); !slices.Equal(have, c.want) {
				t.Errorf("the differences are %+v, want %+v", have, c.want)
			}
		})
	}
}

func TestListThatProvesNothing(t *testing.T) {
	w := agreed()
	if err := w.believable(); err != nil {
		t.Errorf("a whole list: %v", err)
	}
	w.stored = w.stored[:1]
	if err := w.believable(); err != nil {
		t.Errorf("one of two is missing: %v", err)
	}
	w.stored = []csiclient.Listed{{Handle: "of another cluster"}}
	if w.believable() == nil {
		t.Error("a list without any of the cluster's volumes is believed")
	}
	w.stored = nil
	if w.believable() == nil {
		t.Error("an empty list is believed")
	}
}

func TestConfirm(t *testing.T) {
	m, begin := memory{}, time.Now()
	gone, spare := difference{kind: missing, handle: "a"}, difference{kind: leaked, handle: "b"}
	for _, c := range []struct {
		name        string
		after       time.Duration
		found, want []difference
	}{
		{"the first time proves nothing", 0, []difference{gone, spare}, nil},
		{"twice in a row is proof, but not of a leak", time.Minute, []difference{gone, spare}, []difference{gone}},
		{"a sweep without it begins anew", 2 * time.Minute, []difference{spare}, nil},
		{"the first time again", 3 * time.Minute, []difference{gone, spare}, nil},
		{"a leak after its grace", 10 * time.Minute, []difference{spare}, []difference{spare}},
	} {
		if have := m.confirm(c.found, begin.Add(c.after), 10*time.Minute); !slices.Equal(have, c.want) {
			t.Errorf("%s: have %+v, want %+v", c.name, have, c.want)
		}
	}
	if len(m) != 1 {
		t.Errorf("it remembers %+v", m)
	}
}
