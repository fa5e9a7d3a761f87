package adversary

import (
	"math/rand/v2"
	"strings"
	"time"
)

// dice makes a schedule.
type dice struct {
	*rand.Rand
	setup Setup
}

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func (d dice) ms(least, most int) time.Duration {
	return time.Duration(least+d.IntN(most-least+1)) * time.Millisecond
}

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

// profiles returns functions that make the tracks of a schedule, each with another emphasis.
func profiles() map[string]func(d dice) [][]Step {
	return map[string]func(d dice) [][]Step{
		"calls": dice.calls, "churn": dice.churn, "copies": dice.copies, "storage": dice.storage, "config": dice.config,
		"greedy": dice.greedy, "slow": dice.slow, "crowded": dice.crowded, "cloud": dice.cloudy,
		"brimful": dice.brimful, "foreign": dice.foreign, "groups": dice.groups, "reading": dice.reading,
		"changes": dice.changes, "clocks": dice.clocks, "denied": dice.denied, "silent": dice.silent,
	}
}

// NewSchedule returns the schedule of a seed.
func NewSchedule(setup Setup, profile string, seed uint64) Schedule {
	d := dice{rand.New(rand.NewPCG(seed, 14)), setup}
	s := Schedule{Setup: setup.Name, Profile: profile, Seed: seed, Tracks: profiles()[profile](d)}
	s.draw()
	return s
}

// draw gives each fault its number, from a sequence of its own: so a seed's steps and faults are what they always were.
func (s Schedule) draw() {
	random := rand.New(rand.NewPCG(s.Seed, 15))
	for _, track := range s.Tracks {
		for _, step := range track {
			if step.Fault != nil {
				step.Fault.Draw = random.Uint64()
			}
		}
	}
}

// profilesOf returns the names of a setup's profiles.
func profilesOf(s Setup) []string { return strings.Fields(s.Profiles) }

// class returns a class that may be used at any time.
func (d dice) class() int {
	for {
		if c := d.IntN(len(d.setup.Classes)); !d.setup.Classes[c].Aside {
			return c
		}
	}
}

func (d dice) how(s Step) Step {
	switch n := d.IntN(100); {
	case n < 12:
		s.How = Twice
	case n < 24:
		s.How = Lost
	case n < 36:
		s.How, s.Within = Hasty, d.ms(1, 40)
	}
	return s
}

// any returns a random step of a life; likelier ones are listed more often.
func (d dice) any() Step {
	s := Step{
		Op: pick(d, Create, Create, Use, Use, Write, Write, Leave, Snapshot, Snapshot, Restore, Clone, Expand, Modify,
			Delete, Forget, List, Read, Check),
		Slot: d.IntN(2), From: d.IntN(2), Class: d.IntN(len(d.setup.Classes)), Raw: d.chance(40), MiB: int64(8 + 4*d.IntN(3)),
		Count: 1 + d.IntN(12),
	}
	if s.Op == Restore || s.Op == Clone {
		s.Slot = 2 + d.IntN(2)
	}
	if s.Op == Use && d.chance(30) {
		s.Slot += 2
	}
	return d.how(s)
}

// calls returns lives of all kinds, with calls made twice, lost and given up, concurrent steps, and kills.
func (d dice) calls() [][]Step {
	tracks := make([][]Step, 3)
	for i := range tracks {
		tracks[i] = []Step{{Op: Create, Class: d.class(), Raw: d.chance(40), MiB: 8}}
		for range 12 {
			s := d.any()
			switch other := d.any(); {
			case d.chance(25) && fits(s, other):
				s.Beside, s.How = &other, Once
			case (d.setup.Cloud || !d.setup.Attach) && d.chance(4):
				s.Fault = &Fault{Kind: "kill", After: d.ms(0, 60)}
			}
			tracks[i] = append(tracks[i], s)
		}
	}
	return tracks
}

// fits reports whether two steps can run concurrently with a clear outcome.
func fits(s, other Step) bool {
	switch s.Op {
	case Expand:
		return other.Op == Modify && other.Slot == s.Slot
	case Clone:
		return other.Slot == s.From && (other.Op == Write || other.Op == Delete || other.Op == Expand || other.Op == Leave)
	case Restore:
		return other.Op == Forget && other.From%3 == s.From%3
	case Snapshot:
		return other.Slot == s.Slot && (other.Op == Write || other.Op == Delete || other.Op == Expand || other.Op == Leave)
	default:
		return other.Op == List
	}
}

// churn stages and unstages as fast as possible, raw and mounted volumes mixed, beside a process that opens each
// device.
func (d dice) churn() [][]Step {
	tracks := make([][]Step, 6)
	for i := range tracks {
		tracks[i] = []Step{{Op: Create, Class: 0, Raw: i%2 == 0, MiB: 8}, {Op: Use}, {Op: Write, Count: 8}, {Op: Leave}}
		for range 8 + 92*((i+1)%2) { // A raw one takes less time.
			tracks[i] = append(tracks[i], Step{Op: Use}, Step{Op: Leave})
		}
	}
	tracks[0][0].Fault = &Fault{Kind: "opener", For: 2 * time.Second}
	return tracks
}

// copies takes snapshots, clones and restores of large and changing volumes, and stops, kills or deletes in the middle.
func (d dice) copies() [][]Step {
	tracks := make([][]Step, 2)
	for i := range tracks {
		class := d.class()
		fill := Step{Op: Fill, Count: pick(d, 6, 300, 1500)}
		track := []Step{{Op: Create, Class: class, MiB: 24}, {Op: Use}, fill}
		if d.chance(60) {
			track = append(track, Step{Op: Leave})
		}
		copying := Step{Op: pick(d, Snapshot, Clone), From: 0}
		if copying.Op == Clone {
			copying.Slot = 2
		}
		track = append(track, d.during(copying))
		if copying.Op == Snapshot {
			track = append(track, d.during(Step{Op: Restore, Slot: 2}))
		}
		track = append(track, Step{Op: Use, Slot: 2}, Step{Op: Write, Slot: 2, Count: 200, Names: 200},
			Step{Op: Pause, Count: 300}, Step{Op: Read, Slot: 2})
		tracks[i] = track
	}
	return tracks
}

// during returns a copy that is disturbed in the middle.
func (d dice) during(s Step) Step {
	interrupt := "kill"
	if d.setup.Apart {
		interrupt = pick(d, "stop", "kill")
	}
	if s.Op == Restore {
		if d.chance(50) {
			s.Beside = &Step{Op: Forget, After: d.ms(0, 60)}
			return s
		}
	} else if d.chance(50) {
		s.Beside = &Step{Op: pick(d, Write, Write, Write, Delete, Leave, Expand), Count: 400, Names: 200, After: d.ms(0, 30)}
	}
	if d.chance(60) {
		s.Fault = &Fault{Kind: interrupt, After: d.ms(0, 80)}
		if interrupt == "stop" {
			s.Fault.For = d.ms(200, 800)
		}
	}
	return s
}

// storage returns tracks in which one of two disks fails or is full, at start and in the middle. Images are not used
// meanwhile, because a sparse one has no remedy then.
func (d dice) storage() [][]Step {
	tracks := make([][]Step, 3)
	for i := range tracks {
		class := i % len(d.setup.Classes)
		tracks[i] = []Step{{Op: Create, Class: class, MiB: 8}}
		if !d.setup.Classes[class].Sized {
			tracks[i] = append(tracks[i], Step{Op: Use}, Step{Op: Write, Count: 6})
		}
		tracks[i] = append(tracks[i], Step{Op: Snapshot, From: 1})
		for range 6 {
			s := Step{Op: pick(d, Create, Restore, Clone, Snapshot, Forget, Delete, Leave, Expand, List), Slot: d.IntN(3),
				From: d.IntN(2), Class: class, MiB: 8}
			if d.chance(30) {
				s.How = pick(d, Lost, Twice)
			}
			tracks[i] = append(tracks[i], s, Step{Op: Pause, Count: 30})
		}
	}
	kind := pick(d, "full", "full-start", "full-state", "fixed-state", "read-only", "eio", "eio-start")
	f := &Fault{Kind: kind, On: 1, After: d.ms(0, 300), For: d.ms(300, 1500)}
	if strings.HasPrefix(kind, "full") {
		f.On = d.IntN(2)
	}
	if strings.HasSuffix(kind, "-state") {
		return d.leaving(f)
	}
	tracks[d.IntN(3)][2].Fault = f
	return tracks
}

// brimful fills the volumes' storage, at a start or not, while a volume comes into use and goes out of it, and is
// finally deleted: users who have filled the storage must be able to come back. Sparse devices are left out, because
// they have no remedy then.
func (d dice) brimful() [][]Step {
	var tracks [][]Step
	for class, c := range d.setup.Classes {
		if c.Sized || c.Aside {
			continue
		}
		full := &Fault{Kind: pick(d, "full", "full-start"), On: c.Disk, After: d.ms(0, 20), For: d.ms(1000, 1500)}
		track := []Step{{Op: Create, Class: class, MiB: 8}, {Op: Use}, {Op: Write, Count: 6}, {Op: Leave, Fault: full},
			{Op: Pause, Count: 200}}
		for range 3 {
			track = append(track, Step{Op: Use}, Step{Op: Pause, Count: d.IntN(60)}, Step{Op: Leave})
		}
		tracks = append(tracks, append(track, Step{Op: Delete}, Step{Op: Pause, Count: 100}))
	}
	return tracks
}

// leaving returns tracks in which volumes are taken out of use while the node cannot record that, and used again.
func (d dice) leaving(f *Fault) [][]Step {
	tracks := make([][]Step, 3)
	for i := range tracks {
		tracks[i] = []Step{{Op: Create, Class: d.class(), MiB: 8}, {Op: Use}, {Op: Write, Count: 6}, {Op: Snapshot, From: 1}}
		for range 4 {
			tracks[i] = append(tracks[i], Step{Op: Pause, Count: 60}, Step{Op: Leave}, Step{Op: Use})
		}
		tracks[i] = append(tracks[i], Step{Op: Leave}, Step{Op: Forget, From: 1}, Step{Op: Delete})
	}
	f.For = max(f.For, time.Second)
	tracks[d.IntN(3)][3].Fault = f
	return tracks
}

// config makes the driver start with another configuration, or over records that it cannot read.
func (d dice) config() [][]Step {
	tracks := d.storage()
	for _, track := range tracks {
		for i := range track {
			track[i].Fault = nil
		}
	}
	kinds := []string{"missing", "renamed", "added", "empty", "newer", "loop", "few-files", "no-files"}
	if d.setup.Ages != "" { // Its storage has a home of the driver.
		kinds = append(kinds, "lost", "unplaced")
	}
	kind := pick(d, kinds...)
	tracks[2][2].Fault = &Fault{Kind: kind, On: d.IntN(8), After: d.ms(0, 200), For: d.ms(300, 1000)}
	if kind == "unplaced" {
		tracks[2][2].Fault.For = 3 * draftPatience // An attempt without a sign of life is given up, and then removed.
	}
	return tracks
}

// greedy requests all the room that the driver reports.
func (d dice) greedy() [][]Step {
	tracks := make([][]Step, len(d.setup.Classes))
	for i := range tracks {
		all, some := Step{Op: Create, Class: i}, Step{Op: Create, Class: i, Slot: 1, MiB: int64(16 + 16*d.IntN(4))}
		tracks[i] = []Step{some, {Op: Damage, Slot: 1}, {Op: Snapshot, Slot: 1}, all, {Op: List}}
		if d.chance(70) {
			tracks[i] = []Step{all, some, {Op: Expand, Slot: 1}, {Op: Clone, Slot: 2, From: 1}, {Op: List}}
		}
	}
	return tracks
}

// crowded makes copies of which the last do not fit, beside a writer that writes little.
func (d dice) crowded() [][]Step {
	tracks := [][]Step{{{Op: Create, MiB: 8}, {Op: Use}}}
	for range 40 {
		tracks[0] = append(tracks[0], Step{Op: Write, Count: 20}, Step{Op: Pause, Count: 10})
	}
	for range 2 {
		tracks = append(tracks, []Step{
			{Op: Create, MiB: 64}, {Op: Use}, {Op: Fill, Count: 40 + d.IntN(9)}, {Op: Leave}, {Op: Snapshot},
			{Op: Clone, Slot: 2}, {Op: Restore, Slot: 3}, {Op: List},
		})
	}
	return tracks
}

// slow gives work less time than it needs, each time.
func (d dice) slow() [][]Step {
	track := []Step{{Op: Create, Class: d.class(), MiB: 120}, {Op: Use}, {Op: Fill, Count: 40}, {Op: Leave}}
	for _, op := range []Op{Clone, Snapshot, Restore} {
		quick, gone := Step{Op: op, Slot: map[Op]int{Clone: 2, Restore: 2}[op]}, Step{Op: Delete, Slot: 2}
		if op == Snapshot {
			gone = Step{Op: Forget}
		}
		short := quick
		short.How = Short
		track = append(track, quick, gone, short)
		if op != Snapshot {
			track = append(track, gone)
		}
	}
	return [][]Step{track}
}

// groups returns snapshots of two volumes at once, in the middle of which the volumes or the driver are disturbed.
func (d dice) groups() [][]Step {
	tracks := make([][]Step, 2)
	for i := range tracks {
		track := []Step{{Op: Create, MiB: 8, Raw: d.chance(20)}, {Op: Create, Slot: 1, MiB: 12}}
		for slot := range 2 {
			track = append(track, Step{Op: Use, Slot: slot}, Step{Op: Write, Slot: slot, Count: 8})
			if d.chance(50) {
				track = append(track, Step{Op: Leave, Slot: slot})
			}
		}
		for range 2 {
			whole := d.during(Step{Op: Group})
			if whole.Beside != nil {
				whole.Beside.Slot = d.IntN(2)
			}
			if d.setup.Attach && !d.setup.Cloud { // State in memory is lost with the process.
				whole.Fault = nil
			}
			restored := Step{Op: Restore, Slot: 2, From: d.IntN(2)}
			if d.chance(30) {
				restored.Beside = &Step{Op: Forget, From: d.IntN(2), After: d.ms(0, 40)}
			}
			track = append(track, d.how(whole), restored, Step{Op: Use, Slot: 2}, Step{Op: List},
				Step{Op: Leave, Slot: 2}, Step{Op: Delete, Slot: 2}, Step{Op: Forget, From: d.IntN(2)})
		}
		tracks[i] = append(track, Step{Op: Group})
	}
	return tracks
}

// changes modifies volumes repeatedly. Another controller takes over in the middle of that, and the changes are over
// when the first one continues.
func (d dice) changes() [][]Step {
	tracks, twins := make([][]Step, 3), d.chance(50)
	for i := range tracks {
		tracks[i] = []Step{{Op: Create, Class: d.class(), MiB: 8}}
		for range 20 {
			s := d.how(Step{Op: pick(d, Modify, Modify, Modify, Expand), Count: d.IntN(2)})
			if twins { // A second old call must not pass for a caller that retries.
				s.How = Twice
			}
			tracks[i] = append(tracks[i], s)
		}
		tracks[i] = append(tracks[i], Step{Op: Pause, Count: 1500}, Step{Op: Delete})
	}
	tracks[0][1].Fault = &Fault{Kind: "stop", After: d.ms(0, 150), For: d.ms(300, 900)}
	return tracks
}
