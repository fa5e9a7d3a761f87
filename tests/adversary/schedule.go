package adversary

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Op is what a step does.
type Op string

// The Ops.
const (
	Create   Op = "create"
	Restore  Op = "restore"  // a snapshot, as a new volume
	Clone    Op = "clone"    // a volume, as a new one
	Use      Op = "use"      // stage and publish, and look at what is there
	Leave    Op = "leave"    // unpublish and unstage
	Cycle    Op = "cycle"    // use and leave, again and again until all is calm, or Count times before
	Write    Op = "write"    // some files, one after the other
	Fill     Op = "fill"     // many files, or large ones
	Read     Op = "read"     // all that is there
	Expand   Op = "expand"   //
	Modify   Op = "modify"   //
	Snapshot Op = "snapshot" //
	Group    Op = "group"    // a snapshot of both volumes in the first two slots, at one instant
	Forget   Op = "forget"   // delete a snapshot, with the group that it belongs to
	Delete   Op = "delete"   // also what is staged, which must be refused
	List     Op = "list"     // volumes, snapshots, capacity
	Check    Op = "check"    // what is told of a volume: its state, its health, what it can be used for
	Cut      Op = "cut"      // leave a volume as after a power loss: what is in the journal only stays there
	Peek     Op = "peek"     // use a volume for reading only, and leave it
	Damage   Op = "damage"   // shorten the data of a volume that nobody uses: it must not become a snapshot
	Brand    Op = "brand"    // have the image of a volume that nobody uses look like a RAID's: it must not be mounted
	Glimpse  Op = "glimpse"  // put an image back to what a power loss would have left, and stage it for reading only
	Pause    Op = "pause"    // so that a fault has its time
)

// How is how a step's calls are made.
type How string

// The Hows.
const (
	Once  How = ""
	Twice How = "twice" // at once
	Lost  How = "lost"  // the answer is thrown away, and the call made again after Within
	Hasty How = "hasty" // the first attempts are given up after Within
	Short How = "short" // every attempt is given up after a quarter of what the last such step took
)

// Step is what a client does next. What does not apply when its turn comes is left out, so that any part of a schedule
// is one.
type Step struct {
	Op     Op
	Slot   int // of the track's volumes
	From   int // the slot of a snapshot or of the volume that is cloned
	Class  int // of the setup's classes
	Raw    bool
	FSType string // of a volume that is no device; empty for the driver's choice
	MiB    int64  // size; 0 for as much as there is said to be
	Count  int    // how many writes
	Names  int    // over how many files; 0 for a few
	How    How
	Within time.Duration
	Beside *Step         // another step at the same time
	After  time.Duration // of what is beside another step: so much later
	Fault  *Fault
}

// Fault is what goes wrong from some time after the beginning of a step, for some time.
type Fault struct {
	Kind  string
	On    int // which filesystem, pool or share
	After time.Duration
	For   time.Duration
	Late  bool // After begins once each track has come to a Cycle, or has ended
}

// Schedule is all that happens.
type Schedule struct {
	Setup   string
	Profile string
	Seed    uint64
	Tracks  [][]Step
}

// String is the schedule for people, a line each step.
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

// String is a step for people.
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

// clone is a copy whose tracks and steps can be changed.
func (s Schedule) clone() Schedule {
	c := s
	c.Tracks = make([][]Step, len(s.Tracks))
	for i := range s.Tracks {
		c.Tracks[i] = slices.Clone(s.Tracks[i])
	}
	return c
}
