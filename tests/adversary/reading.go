package adversary

import (
	"os"

	"golang.org/x/sys/unix"
)

// cut ends a volume's filesystem as a power loss would, and then leaves the volume: synced data is only in the journal,
// not in its place.
func (a *actor) cut(s Step, v *volume) {
	dir, err := os.Open(a.target(v))
	if err == nil {
		err = unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, flushed)
		_ = dir.Close() // it was only asked
	}
	if err != nil {
		if !a.mayFail(v) {
			a.blame("%s cannot be cut: %v", v, err)
		}
		return
	}
	v.cut = true
	a.leave(s, v, false)
}

// peek reads a volume with a read-only use. After a cut it shows all synced data, or is refused.
func (a *actor) peek(s Step, v *volume) {
	v.reading = true
	a.use(s, v, false)
	a.leave(s, v, false)
	v.reading = false
}

// reading uses volumes read-only, after they were left cleanly or not.
func (d dice) reading() [][]Step {
	track := []Step{{Op: Create, MiB: 304, FSType: "xfs"}, {Op: Use}}
	for range 3 {
		end := Step{Op: pick(d, Cut, Cut, Leave)}
		if d.chance(20) {
			end.Fault = &Fault{Kind: "kill", After: d.ms(0, 30)}
		}
		track = append(track, Step{Op: Write, Count: 1 + d.IntN(12)}, end)
		for range d.IntN(3) {
			track = append(track, d.how(Step{Op: Peek}))
		}
		track = append(track, Step{Op: Use})
	}
	return [][]Step{append(track, Step{Op: Leave}, Step{Op: Peek})}
}
