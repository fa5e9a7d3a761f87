package backendtest

import (
	"context"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// capacityChecks check the promises of CapacityReporter.
func capacityChecks() []check {
	return []check{
		{"what is reported makes sense and is there", capacityMakesSense},
		{"a new volume takes its capacity and gives it back", capacityFallsAndReturns},
		{"a place that cannot be served has none", capacityElsewhere},
		{"a use that cannot be served has none", func(w *world) {
			query := w.capacityQuery()
			query.Access = backends.Access{Types: []backends.AccessType{"tape"}}
			w.hasNone("an access type that does not exist", query)
		}},
	}
}

func (w *world) capacityQuery() backends.CapacityQuery {
	spec := w.spec("any")
	return backends.CapacityQuery{Parameters: spec.Parameters, Access: spec.Access}
}

func (w *world) capacity() backends.Capacity {
	w.Helper()
	c, err := w.f.Capacity.Capacity(w.ctx(), w.capacityQuery())
	w.must("Capacity", err)
	return c
}

func (w *world) hasNone(what string, query backends.CapacityQuery) {
	w.Helper()
	c, err := w.f.Capacity.Capacity(w.ctx(), query)
	if err != nil || c.AvailableBytes != 0 {
		w.Errorf("%s: got a capacity of %d bytes, %v; want 0 and no error", what, c.AvailableBytes, err)
	}
}

func capacityMakesSense(w *world) {
	c := w.capacity()
	if c.AvailableBytes <= 0 || c.LargestBytes < 0 || c.SmallestBytes < 0 {
		w.Fatalf("the capacity is %+v, want something available", c)
	}
	if c.LargestBytes != 0 && (c.LargestBytes > c.AvailableBytes || c.SmallestBytes > c.LargestBytes) {
		w.Errorf("the capacity is %+v, want smallest <= largest <= available", c)
	}
	if c.SmallestBytes > 0 {
		spec := w.spec("smallest")
		spec.Capacity = backends.CapacityRange{RequiredBytes: c.SmallestBytes, LimitBytes: c.SmallestBytes}
		_, err := w.c.Create(w.ctx(), spec)
		w.must("Create of the smallest size", err)
	}
	anything, err := w.f.Capacity.Capacity(w.ctx(), backends.CapacityQuery{Parameters: w.spec("any").Parameters})
	if err != nil || anything.AvailableBytes <= 0 {
		w.Errorf("for any access the capacity is %d bytes, %v; want some", anything.AvailableBytes, err)
	}
}

func capacityFallsAndReturns(w *world) {
	if !w.h.Reserves {
		return
	}
	before := w.capacity()
	var taken int64
	var made []*backends.Volume
	for i := range 3 {
		made = append(made, w.volume(fmt.Sprint("volume ", i)))
		taken += made[i].CapacityBytes
	}
	if left := w.capacity().AvailableBytes; left != before.AvailableBytes-taken {
		w.Errorf("after taking %d of %d bytes there are %d, want %d", taken, before.AvailableBytes, left,
			before.AvailableBytes-taken)
	}
	w.tooLarge("more than there is", before.AvailableBytes-taken+1)
	w.tooLarge("more than there was", before.AvailableBytes+1)
	if w.f.Expand != nil {
		size := backends.CapacityRange{RequiredBytes: before.AvailableBytes + 1}
		_, err := w.f.Expand.Expand(w.ctx(), made[0].Handle, size)
		w.fails("growing to more than there is", err, backends.Exhausted, backends.OutOfRange)
	}
	ended, cancel := context.WithCancel(w.ctx())
	cancel()
	_, err := w.c.Create(ended, w.spec("too late"))
	w.fails("creating with a request that has ended", err, backends.Busy, backends.Unavailable)
	for _, v := range made {
		w.must("Delete", w.c.Delete(w.ctx(), v.Handle))
	}
	if after := w.capacity(); after != before {
		w.Errorf("after everything was deleted the capacity is %+v, want %+v", after, before)
	}
}

func (w *world) tooLarge(what string, size int64) {
	w.Helper()
	spec := w.spec("too large")
	spec.Capacity = backends.CapacityRange{RequiredBytes: size}
	_, err := w.c.Create(w.ctx(), spec)
	w.fails("Create of "+what, err, backends.Exhausted, backends.OutOfRange)
	_, err = w.c.Find(w.ctx(), w.spec("too large"))
	w.fails("finding it then", err, backends.NotFound)
}

func capacityElsewhere(w *world) {
	query := w.capacityQuery()
	query.Topology = backends.Topology{"nobody.knows/this-key": "here"}
	w.hasNone("a place of an unknown kind", query)
	if w.f.Topologist == nil {
		return
	}
	query.Topology = backends.Topology{}
	for _, key := range w.f.Topologist.TopologyKeys() {
		query.Topology[key] = "no-such-place"
	}
	w.hasNone("an unknown place", query)
	here, err := w.f.Locate.Topology(w.ctx())
	w.must("Topology", err)
	query.Topology = here
	if c, err := w.f.Capacity.Capacity(w.ctx(), query); err != nil || c.AvailableBytes <= 0 {
		w.Errorf("this node's place has a capacity of %d bytes, %v; want some", c.AvailableBytes, err)
	}
}
