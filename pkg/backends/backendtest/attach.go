package backendtest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// attachChecks check the promises of Attacher and Limiter.
func attachChecks() []check {
	return []check{
		{"attaching and detaching is seen in PublishedNodes", attachAndDetach},
		{"attaching again in the same way succeeds with the same attributes", attachAgain},
		{"attached elsewhere is InUse and names the node", attachElsewhere},
		{"an unknown node is NotFound", attachUnknownNode},
		{"a use that the volume does not offer is Invalid", attachImpossible},
		{"detaching from an empty node detaches everywhere", detachEverywhere},
		{"an attached volume is not deleted", deleteAttached},
		{"of concurrent attachments to two nodes one wins", attachRace},
		{"a node's limit is Exhausted", attachLimit},
	}
}

func (w *world) attachTo(v *backends.Volume, node string) {
	w.Helper()
	_, err := w.f.Attach.Attach(w.ctx(), w.attachRequest(v, node))
	w.must("Attach to "+node, err)
}

func (w *world) detach(v *backends.Volume, node string) {
	w.Helper()
	w.must(fmt.Sprintf("Detach from %q", node), w.f.Attach.Detach(w.ctx(), v.Handle, node))
}

func (w *world) publishedTo(v *backends.Volume, want ...string) {
	w.Helper()
	have := slices.Sorted(slices.Values(w.get(v.Handle).PublishedNodes))
	if slices.Sort(want); !slices.Equal(have, want) {
		w.Errorf("the volume is published to %q, want %q", have, want)
	}
}

func attachAndDetach(w *world) {
	v, other := w.volume("one"), w.volume("other")
	before := w.get(v.Handle)
	w.attachTo(v, w.h.Nodes[0])
	w.publishedTo(v, w.h.Nodes[0])
	w.publishedTo(other)
	w.detach(v, w.h.Nodes[1])
	w.publishedTo(v, w.h.Nodes[0])
	w.detach(v, "no-such-node")
	w.publishedTo(v, w.h.Nodes[0])
	w.detach(v, w.h.Nodes[0])
	w.publishedTo(v)
	w.detach(v, w.h.Nodes[0])
	w.attachTo(v, w.h.Nodes[1])
	w.publishedTo(v, w.h.Nodes[1])
	w.detach(v, w.h.Nodes[1])
	if after := w.get(v.Handle); !reflect.DeepEqual(after, before) {
		w.Errorf("after Detach the volume is\n%+v\nwant\n%+v", after, before)
	}
}

func attachAgain(w *world) {
	v := w.volume("one")
	first, err := w.f.Attach.Attach(w.ctx(), w.attachRequest(v, w.node()))
	w.must("Attach", err)
	again, err := w.f.Attach.Attach(w.ctx(), w.attachRequest(v, w.node()))
	w.must("Attach again", err)
	if len(first)+len(again) > 0 && !reflect.DeepEqual(again, first) {
		w.Errorf("attached again, the attributes are %v, want %v", again, first)
	}
	for key, value := range first {
		w.shown("an attribute", key+"="+value)
	}
	w.publishedTo(v, w.node())
}

// onOneNode returns an attach request in a single-node mode; ok is false if the volume has no such mode.
func (w *world) onOneNode(v *backends.Volume, node string) (request backends.AttachRequest, ok bool) {
	request = w.attachRequest(v, node)
	for _, mode := range v.Access.Modes {
		if slices.Contains(backends.SingleNodeModes(), mode) {
			request.Access.Modes = []backends.AccessMode{mode}
			return request, true
		}
	}
	return request, false
}

func attachElsewhere(w *world) {
	v := w.volume("one")
	first, ok := w.onOneNode(v, w.h.Nodes[0])
	if !ok {
		w.Logf("no single-node mode is offered: %v", v.Access.Modes)
		return
	}
	_, err := w.f.Attach.Attach(w.ctx(), first)
	w.must("Attach", err)
	second, _ := w.onOneNode(v, w.h.Nodes[1])
	_, err = w.f.Attach.Attach(w.ctx(), second)
	w.fails("attaching to a second node", err, backends.InUse)
	if err != nil && !strings.Contains(err.Error(), w.h.Nodes[0]) {
		w.Errorf("the failure does not name the node %q that has the volume: %v", w.h.Nodes[0], err)
	}
	w.publishedTo(v, w.h.Nodes[0])
	w.detach(v, w.h.Nodes[0])
	w.attachTo(v, w.h.Nodes[1])
}

func attachUnknownNode(w *world) {
	v := w.volume("one")
	for _, node := range []string{"", "no-such-node", "../" + w.node(), w.node() + "x", w.node() + "\x00"} {
		_, err := w.f.Attach.Attach(w.ctx(), w.attachRequest(v, node))
		w.fails(fmt.Sprintf("attaching to %q", node), err, backends.NotFound)
	}
	w.publishedTo(v)
}

func attachImpossible(w *world) {
	v := w.volume("one")
	types, modes := w.attachRequest(v, w.node()), w.attachRequest(v, w.node())
	types.Access.Types = append(slices.Clone(types.Access.Types), "telepathy")
	modes.Access.Modes = append(slices.Clone(modes.Access.Modes), "ALL_NODES_EVERYTHING")
	for _, request := range []backends.AttachRequest{types, modes} {
		_, err := w.f.Attach.Attach(w.ctx(), request)
		w.fails(fmt.Sprintf("attaching for %v", request.Access), err, backends.Invalid)
	}
	w.publishedTo(v)
}

func detachEverywhere(w *world) {
	v := w.volume("one")
	request := w.attachRequest(v, w.h.Nodes[0])
	nodes := w.h.Nodes[:1]
	if slices.Contains(v.Access.Modes, backends.MultiNodeMultiWriter) {
		request.Access.Modes = []backends.AccessMode{backends.MultiNodeMultiWriter}
		nodes = w.h.Nodes
	}
	for _, node := range nodes {
		request.Node = node
		_, err := w.f.Attach.Attach(w.ctx(), request)
		w.must("Attach to "+node, err)
	}
	w.publishedTo(v, slices.Clone(nodes)...)
	w.detach(v, "")
	w.publishedTo(v)
	w.detach(v, "")
}

func deleteAttached(w *world) {
	v := w.volume("one")
	w.attachTo(v, w.h.Nodes[0])
	before := w.get(v.Handle)
	w.fails("deleting what is attached", w.c.Delete(w.ctx(), v.Handle), backends.InUse)
	if after := w.get(v.Handle); !reflect.DeepEqual(after, before) {
		w.Errorf("after that the volume is\n%+v\nwant\n%+v", after, before)
	}
	w.detach(v, w.h.Nodes[0])
	w.must("Delete after Detach", w.c.Delete(w.ctx(), v.Handle))
}

func attachRace(w *world) {
	v := w.volume("one")
	if _, ok := w.onOneNode(v, w.node()); !ok {
		return
	}
	attached := make([]string, 8)
	w.eachOf(len(attached), func(i int) {
		request, _ := w.onOneNode(v, w.h.Nodes[i%2])
		if _, err := w.f.Attach.Attach(w.ctx(), request); err != nil {
			w.fails("attaching beside others", err, backends.InUse, backends.Busy)
			return
		}
		attached[i] = request.Node
	})
	attached = slices.DeleteFunc(attached, func(node string) bool { return node == "" })
	slices.Sort(attached)
	if attached = slices.Compact(attached); len(attached) != 1 {
		w.Fatalf("the volume was attached to %q at the same time, want one node", attached)
	}
	w.publishedTo(v, attached...)
}

// attachLimit attaches volumes up to the node's limit, if a test can reach it.
func attachLimit(w *world) {
	if w.f.Limit == nil {
		return
	}
	limit, err := w.f.Limit.Limit(w.ctx())
	w.must("Limit", err)
	if limit < 0 {
		w.Fatalf("the limit is %d, want at least 0", limit)
	}
	if limit == 0 || limit > 64 {
		w.Logf("the limit of %d is not one to be reached here", limit)
		return
	}
	first := w.volume("first")
	w.attachTo(first, w.node())
	for i := int64(1); i < limit; i++ {
		w.attachTo(w.volume(fmt.Sprint("volume ", i)), w.node())
	}
	last := w.volume("last")
	_, err = w.f.Attach.Attach(w.ctx(), w.attachRequest(last, w.node()))
	w.fails("attaching one more than the limit", err, backends.Exhausted)
	w.publishedTo(last)
	w.attachTo(first, w.node())
	w.attachTo(last, w.h.Nodes[1])
	w.detach(last, w.h.Nodes[1])
	w.detach(first, w.node())
	w.attachTo(last, w.node())
}
