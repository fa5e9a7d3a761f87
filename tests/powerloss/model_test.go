package powerloss

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// state is all that is known of one thing: a volume, a snapshot, a group or a retained volume. It is comparable, so
// that what is there can be held against what must be.
type state struct {
	SizeBytes   int64
	Fingerprint string
	Source      string // the handle of what it was filled from
	Group       string // the handle of its group
	Allocation  string
	OnDelete    string
	ReadAhead   int
	Content     string // what the user wrote and synced, or a description of what is there instead
}

// world is everything that there is, by key: its sort, a slash and its name.
type world map[string]state

// operation is one step of the script. It changes all its keys at once, or none.
type operation struct {
	name   string
	change map[string]*state // nil for what it removes
	writes bool              // the user writes: what is in the volume is anything until it is acknowledged
}

// belief is what must be so at some point of the log.
type belief struct {
	acknowledged world
	inFlight     []*operation
}

func newBelief() *belief { return &belief{acknowledged: world{}} }

// follow takes in what happened.
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
	default: // Nothing that the script was told.
	}
}

// clone is a belief that can be kept.
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

// verdict is what came of holding a world against a belief.
type verdict struct {
	whole, gone int // operations that were in flight
	violations  []string
}

// judge holds what is there against what must be: an operation in flight is whole or gone, and all else as it was
// acknowledged.
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

// pick is the part of the world that the operation changes.
func (o *operation) pick(w world) world {
	part := world{}
	for key := range o.change {
		if s, ok := w[key]; ok {
			part[key] = s
		}
	}
	return part
}

// mask hides what the operation does not promise while it is in flight.
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

// differences says how one world differs from another.
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
