package powerloss

import (
	"fmt"
	"slices"
	"testing"
)

// recordings is the maximum number of recordings until a bug is detected: the kernel also writes on its own, after a
// while or when memory is short, and then the data that the bug leaves out is on the drive.
const recordings = 5

// TestTheTestSees plants bugs and expects them to be detected: a backend that omits syncs, and a drive that ignores
// flushes. Otherwise, a test of power losses that finds nothing might check nothing.
func TestTheTestSees(t *testing.T) {
	demand(t)
	boot := newBoots(t)
	s := seedOf(t)
	var table report
	t.Cleanup(func() { t.Log("\n" + table.String()) })
	list := chosen()
	if !*full {
		list = list[len(list)-1:] // That is btrfs, which compensates no bug.
	}
	for _, f := range list {
		for _, p := range plants() {
			t.Run(f.name+"/"+p.String(), func(t *testing.T) {
				for try := 1; ; try++ {
					boot("before")
					r := record(t, f, manner{name: "quiet", lie: p.lie})
					boot("after")
					losses := replayAll(t, r, chooseAcknowledged(r, p.model, s), *workers, s)
					line := table.add(r, p.model, losses)
					if line.broken > 0 || slices.Contains(p.unseenOn, f.name) {
						tell(t, r, losses)
						return
					}
					t.Logf("recording %d: no violation was seen in %d cuts", try, line.cuts)
					if try == recordings {
						t.Fatalf("no violation was seen in %d recordings", recordings)
					}
				}
			})
		}
	}
}

// plant is a bug.
type plant struct {
	lie   lie
	model model
	// unseenOn are the filesystems that may compensate the bug: a sync of one file writes the whole journal to the drive,
	// with the names in all directories (ext4, xfs) and the pending data (ext4, in ordered mode). The backend does not
	// rely on that, and btrfs does not do it.
	unseenOn []string
}

func (p plant) String() string {
	if p.lie == noLie {
		return string(p.model)
	}
	return "no-sync-of-" + string(p.lie)
}

func plants() []plant {
	journaled := []string{"ext4", "xfs"}
	return []plant{
		{model: deaf},
		{lie: everything, model: cached},
		{lie: records, model: cached},
		{lie: shelves, model: cached},
		{lie: owners, model: cached},
		{lie: images, model: cached, unseenOn: journaled},
		{lie: drafts, model: cached, unseenOn: journaled},
		{lie: trees, model: cached, unseenOn: journaled},
	}
}

// chooseAcknowledged selects the cuts right after an acknowledgement, or all in the full form.
func chooseAcknowledged(r *recording, m model, s uint64) []cut {
	if *full {
		return choose(r, m, s)
	}
	return slices.DeleteFunc(allCuts(r.entries, m, 1), func(c cut) bool { return !r.entries[c.after].acknowledges() })
}

// tell logs one violation, so that a reader sees the detection.
func tell(t *testing.T, r *recording, losses []loss) {
	i := slices.IndexFunc(losses, func(l loss) bool { return len(l.verdict.violations) > 0 })
	if i >= 0 {
		t.Log("seen, as it should be: " + fmt.Sprintf("%.700s", losses[i].describe(r)))
	}
}
