package powerloss

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// state is the known state of a volume, a snapshot, a group or a retained volume. It is comparable, so that the actual
// state can be compared with the expected one.
type state struct {
	SizeBytes   int64
	Fingerprint string
	Source      string // the handle of its source
	Group       string // the handle of its group
	Allocation  string
	OnDelete    string
	ReadAhead   int
	Content     string // the data that the user wrote and synced, or a description of other content
}

// world contains all states by key: the sort, a slash and the name.
type world map[string]state

// operation is one step of the script. It changes all its keys at once, or none.
type operation struct {
	name   string
	change map[string]*state // nil for deleted ones
	writes bool              // the user writes: the content is undefined until the acknowledgement
}

// belief is the expected state at some point of the log.
type belief struct {
	acknowledged world
	inFlight     []*operation
}

func newBelief() *belief { return &belief{acknowledged: world{}} }

// follow applies an event.
func (b *belief) follow(e entry) {
	switch e.kind {
	case begun:
		b.inFlight = append(b.inFlight, e.op)
	case looked:
		for _, o := range b.inFlight {
			maps.DeleteFunc(b.acknowledged, func(key string, _ state) bool { _, ok := o.change[key]; return ok })
		}
		b.inFlight = nil
		e.op.applyTo(b.acknowledged)
	case answered:
		b.inFlight = slices.DeleteFunc(b.inFlight, func(o *operation) bool { return o == e.op })
		e.op.applyTo(b.acknowledged)
	default: // The script's knowledge does not change.
	}
}

// clone returns an independent copy.
func (b *belief) clone() *belief {
	return &belief{acknowledged: maps.Clone(b.acknowledged), inFlight: slices.Clone(b.inFlight)}
}

func (o *operation) applyTo(w world) {
	for key, s := range o.change {
		if s == nil {
			delete(w, key)
		} else {
			w[key] = *s
		}
	}
}

// verdict is the result of the comparison of a world with a belief.
type verdict struct {
	whole, gone int // completed and reverted operations of those in flight
	violations  []string
}

// judge compares the actual with the expected state: an operation in flight is complete or had no effect, and all other
// states are as acknowledged.
func (b *belief) judge(have world) verdict {
	var v verdict
	want, seen := maps.Clone(b.acknowledged), maps.Clone(have)
	for _, o := range b.inFlight {
		before, after := o.pick(want), o.pick(want)
		o.applyTo(after)
		now := o.pick(seen)
		switch {
		case maps.Equal(now, after):
			v.whole++
		case maps.Equal(o.mask(now), o.mask(before)):
			v.gone++
		default:
			v.violations = append(v.violations, fmt.Sprintf("%s was in flight and is neither whole nor gone: %s", o.name,
				differences(now, before)))
		}
		for key := range o.change {
			delete(want, key)
			delete(seen, key)
		}
	}
	if !maps.Equal(seen, want) {
		v.violations = append(v.violations, "not as acknowledged: "+differences(seen, want))
	}
	return v
}

// pick returns the states that the operation changes.
func (o *operation) pick(w world) world {
	part := world{}
	for key := range o.change {
		if s, ok := w[key]; ok {
			part[key] = s
		}
	}
	return part
}

// mask removes the fields that the operation does not guarantee while it is in flight.
func (o *operation) mask(w world) world {
	if !o.writes {
		return w
	}
	masked := world{}
	for key, s := range w {
		s.Content = ""
		masked[key] = s
	}
	return masked
}

// differences describes the differences between two worlds.
func differences(have, want world) string {
	keys := map[string]bool{}
	for _, w := range []world{have, want} {
		for key := range w {
			keys[key] = true
		}
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		h, there := have[key]
		w, wanted := want[key]
		switch {
		case !there:
			list = append(list, fmt.Sprintf("%s is not there, want %+v", key, w))
		case !wanted:
			list = append(list, fmt.Sprintf("%s is there and must not be: %+v", key, h))
		case h != w:
			list = append(list, fmt.Sprintf("%s is %+v, want %+v", key, h, w))
		}
	}
	return strings.Join(list, "; ")
}
