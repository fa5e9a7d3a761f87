package adversary

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Op is the operation of a step.
type Op string

// The Ops.
const (
	Create   Op = "create"
	Restore  Op = "restore"  // a snapshot, as a new volume
	Clone    Op = "clone"    // a volume, as a new one
	Use      Op = "use"      // stage and publish, and read the contents
	Leave    Op = "leave"    // unpublish and unstage
	Cycle    Op = "cycle"    // use and leave, repeatedly until all is calm, or Count times before
	Write    Op = "write"    // some files, one after the other
	Fill     Op = "fill"     // many files, or large ones
	Read     Op = "read"     // the whole contents
	Expand   Op = "expand"   //
	Modify   Op = "modify"   //
	Snapshot Op = "snapshot" //
	Group    Op = "group"    // a snapshot of both volumes in the first two slots, at one instant
	Forget   Op = "forget"   // delete a snapshot, with the group that it belongs to
	Delete   Op = "delete"   // also a staged volume, which must be refused
	List     Op = "list"     // volumes, snapshots, capacity
	Check    Op = "check"    // queries of a volume: its state, its health, its possible uses
	Cut      Op = "cut"      // leave a volume as after a power loss: data that is only in the journal stays there
	Peek     Op = "peek"     // use a volume read-only, and leave it
	Damage   Op = "damage"   // shorten the data of an unused volume: it must not become a snapshot
	Brand    Op = "brand"    // make the image of an unused volume look like a RAID member: it must not be mounted
	Glimpse  Op = "glimpse"  // reset an image to its state after a power loss, and try read-only staging
	Pause    Op = "pause"    // gives a fault its time
)

// How says how a step's calls are made.
type How string

// The Hows.
const (
	Once  How = ""
	Twice How = "twice" // at once
	Lost  How = "lost"  // the answer is dropped, and the call is repeated after Within
	Hasty How = "hasty" // the first attempts are given up after Within
	Short How = "short" // every attempt is given up after a quarter of the last duration of such a step
)

// Step is the next action of a client. A step that does not apply in its turn is skipped, so that any part of a
// schedule is a schedule.
type Step struct {
	Op     Op
	Slot   int // of the track's volumes
	From   int // the slot of a snapshot or of the volume that is cloned
	Class  int // of the setup's classes
	Raw    bool
	FSType string // of a volume that is no device; empty for the driver's choice
	MiB    int64  // size; 0 for the reported maximum
	Count  int    // number of writes
	Names  int    // number of files; 0 for a few
	How    How
	Within time.Duration
	Beside *Step         // another step at the same time
	After  time.Duration // for a step beside another: its delay
	Fault  *Fault
}

// Fault is a failure that begins some time after the beginning of a step, and lasts for some time.
type Fault struct {
	Kind  string
	On    int // which filesystem, pool or share
	After time.Duration
	For   time.Duration
	Late  bool   // After begins once each track has come to a Cycle, or has ended
	Draw  uint64 // a random number, for the fault to choose by
}

// Schedule is everything that happens.
type Schedule struct {
	Setup   string
	Profile string
	Seed    uint64
	Tracks  [][]Step
}

// String formats the schedule for people, one line for each step.
func (s Schedule) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "-setup %s -profile %s -seed %d\n", s.Setup, s.Profile, s.Seed)
	for i, track := range s.Tracks {
		for _, step := range track {
			fmt.Fprintf(&out, "  track %d: %s\n", i, step)
		}
	}
	return out.String()
}

// String formats a step for people.
func (s Step) String() string {
	text := fmt.Sprintf("%s %d", s.Op, s.Slot)
	switch s.Op {
	case Create:
		text += fmt.Sprintf(" class %d, %d MiB, raw %t", s.Class, s.MiB, s.Raw)
	case Restore, Clone, Snapshot, Forget:
		text += fmt.Sprintf(" from %d", s.From)
	case Write, Fill, Pause, Modify, Cycle:
		text += fmt.Sprintf(" x%d", s.Count)
	default:
	}
	if s.How != Once {
		text += fmt.Sprintf(", %s %v", s.How, s.Within)
	}
	if s.Beside != nil {
		text += fmt.Sprintf(" BESIDE after %v: %s", s.Beside.After, s.Beside)
	}
	if f := s.Fault; f != nil {
		text += fmt.Sprintf(" FAULT %s on %d after %v for %v", f.Kind, f.On, f.After, f.For)
		if f.Late {
			text += ", late"
		}
	}
	return text
}

// size counts the steps and faults.
func (s Schedule) size() (n int) {
	for _, track := range s.Tracks {
		for _, step := range track {
			n++
			if step.Fault != nil {
				n++
			}
			if step.Beside != nil {
				n++
			}
		}
	}
	return n
}

// clone returns a copy whose tracks and steps can be changed.
func (s Schedule) clone() Schedule {
	c := s
	c.Tracks = make([][]Step, len(s.Tracks))
	for i := range s.Tracks {
		c.Tracks[i] = slices.Clone(s.Tracks[i])
	}
	return c
}
