package ebs

import (
	"github.com/stowage-csi/stowage/pkg/backends"
)

const gib = 1 << 30

const (
	typeGP3 = "gp3"
	typeIO1 = "io1"
	typeIO2 = "io2"
)

// rules are a volume type's limits in the EBS User Guide ("Amazon EBS volume types").
type rules struct {
	leastGiB, mostGiB   int64
	leastIOPS, mostIOPS int64 // 0 where they cannot be provisioned
	iopsPerGiB          int64
	needsIOPS           bool
	mostThroughput      int64 // MiB a second; 0 where it cannot be provisioned
}

func rulesOf(kind string) (rules, error) {
	switch kind {
	case typeGP3:
		return rules{leastGiB: 1, mostGiB: 65536, leastIOPS: 3000, mostIOPS: 80000, iopsPerGiB: 500, mostThroughput: 2000},
			nil
	case typeIO1:
		return rules{leastGiB: 4, mostGiB: 16384, leastIOPS: 100, mostIOPS: 64000, iopsPerGiB: 50, needsIOPS: true}, nil
	case typeIO2:
		return rules{leastGiB: 4, mostGiB: 65536, leastIOPS: 100, mostIOPS: 256000, iopsPerGiB: 1000, needsIOPS: true}, nil
	case "gp2":
		return rules{leastGiB: 1, mostGiB: 16384}, nil
	case "st1", "sc1":
		return rules{leastGiB: 125, mostGiB: 16384}, nil
	case "standard":
		return rules{leastGiB: 1, mostGiB: 1024}, nil
	}
	return rules{}, backends.Errorf(backends.Invalid,
		"volume type %q is unknown: use gp3, gp2, io1, io2, st1, sc1 or standard", kind)
}

// The baseline of a gp3 volume, and how many operations each MiB a second of throughput needs.
const (
	baseIOPS          = 3000
	baseThroughput    = 125
	iopsPerThroughput = 4
)

// shape is the changeable part of a volume: its type, size in GiB, operations and MiB a second. 0 means the type's own
// baseline.
type shape struct {
	kind                  string
	gib, iops, throughput int64
}

// check returns which of EC2's rules the shape breaks, so that an impossible class fails before any request to the
// cloud. Kinds: Invalid; OutOfRange for the size.
func (s shape) check() error {
	l, err := rulesOf(s.kind)
	if err != nil {
		return err
	}
	switch {
	case s.gib < l.leastGiB || s.gib > l.mostGiB:
		return backends.Errorf(backends.OutOfRange, "a volume of type %s has %d to %d GiB, not %d", s.kind, l.leastGiB,
			l.mostGiB, s.gib)
	case s.iops != 0 && l.mostIOPS == 0:
		return backends.Errorf(backends.Invalid, "iops are provisioned for gp3, io1 and io2 only: leave them out for %s",
			s.kind)
	case s.iops == 0 && l.needsIOPS:
		return backends.Errorf(backends.Invalid, "a volume of type %s needs iops or iopsPerGB", s.kind)
	case s.iops != 0 && (s.iops < l.leastIOPS || s.iops > l.mostIOPS):
		return backends.Errorf(backends.Invalid, "iops of type %s are %d to %d, not %d", s.kind, l.leastIOPS, l.mostIOPS,
			s.iops)
	case s.iops > max(l.iopsPerGiB*s.gib, l.leastIOPS):
		return backends.Errorf(backends.Invalid, "a volume of type %s and %d GiB has at most %d iops, not %d: make it larger",
			s.kind, s.gib, max(l.iopsPerGiB*s.gib, l.leastIOPS), s.iops)
	}
	return s.checkThroughput(l)
}

func (s shape) checkThroughput(l rules) error {
	iops := max(s.iops, baseIOPS)
	switch {
	case s.throughput == 0:
		return nil
	case l.mostThroughput == 0:
		return backends.Errorf(backends.Invalid, "throughput is provisioned for gp3 only: leave it out for %s", s.kind)
	case s.throughput < baseThroughput || s.throughput > l.mostThroughput:
		return backends.Errorf(backends.Invalid, "throughput is %d to %d MiB/s, not %d", baseThroughput, l.mostThroughput,
			s.throughput)
	case s.throughput*iopsPerThroughput > iops:
		return backends.Errorf(backends.Invalid, "a throughput of %d MiB/s needs %d iops, not %d", s.throughput,
			s.throughput*iopsPerThroughput, iops)
	}
	return nil
}

// shapeFor returns the shape of a new volume whose size is in the range, and at least least bytes. Kinds: Invalid;
// OutOfRange.
func shapeFor(p Parameters, m Mutable, size backends.CapacityRange, preferred, least int64) (shape, error) {
	s := shape{kind: p.Type, iops: p.IOPS, throughput: p.Throughput}
	l, err := rulesOf(s.with(m).kind)
	if err != nil {
		return shape{}, err
	}
	bytes, err := size.Round(preferred, max(least, l.leastGiB*gib), gib)
	if err != nil {
		return shape{}, err
	}
	s.gib = bytes / gib
	if p.IOPSPerGB != 0 || s.with(m).kind == p.Type { // Another type drops the iops that it does not support: see fit.
		s.iops = p.operations(l, s.gib)
	}
	s = s.with(m)
	return s, s.check()
}

// operations returns the operations a second that the class gives a volume of the size. Like aws-ebs-csi-driver, it
// lowers them to the most that the type and the size allow, unless that is less than the least of the type
// (docs/parameters.md there, and capIOPS in pkg/cloud/cloud.go).
func (p Parameters) operations(l rules, gib int64) int64 {
	iops := p.IOPS
	if p.IOPSPerGB != 0 {
		iops = min(p.IOPSPerGB, l.mostIOPS) * gib
	}
	if p.AutoIOPS {
		iops = max(iops, l.leastIOPS)
	}
	if l.mostIOPS == 0 { // The type has none to lower them to.
		return iops
	}
	iops = min(iops, l.mostIOPS)
	if most := l.iopsPerGiB * gib; most >= l.leastIOPS {
		iops = min(iops, most)
	}
	return iops
}

// with returns the shape with the values that a Mutable sets.
func (s shape) with(m Mutable) shape {
	if m.Type != nil && *m.Type != s.kind {
		s.kind = *m.Type
		s = s.fit()
	}
	if l, err := rulesOf(s.kind); err == nil && m.IOPSPerGB != nil {
		if s.iops = (Parameters{IOPSPerGB: *m.IOPSPerGB}).operations(l, s.gib); l.mostIOPS == 0 {
			s.iops = *m.IOPSPerGB // check refuses it.
		}
	}
	if m.IOPS != nil {
		s.iops = *m.IOPS
	}
	if m.Throughput != nil {
		s.throughput = *m.Throughput
	}
	return s
}

// fit drops the values that the type does not support.
func (s shape) fit() shape {
	l, err := rulesOf(s.kind)
	if err != nil || s.iops < l.leastIOPS || s.iops > max(l.iopsPerGiB*s.gib, l.leastIOPS) {
		s.iops = 0
	}
	if l.mostThroughput == 0 {
		s.throughput = 0
	}
	return s
}
