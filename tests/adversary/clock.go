package adversary

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/inside"
)

// leap is the size of a clock change.
const leap = 10 * time.Minute

// clock sets this kernel's clock forward, or back if f.On is odd, until the returned function corrects it. The driver's
// timers continue: only the time of day leaps.
func (w *world) clock(f Fault) (func() error, error) {
	if err := inside.Check(); err != nil {
		return nil, err
	}
	by, began := leap, time.Now()
	if f.On%2 == 1 {
		by = -leap
	}
	right := func() error { return set(began.Add(time.Since(began))) }
	return right, set(began.Add(by))
}

func set(now time.Time) error {
	t := unix.NsecToTimeval(now.UnixNano())
	return unix.Settimeofday(&t)
}

// clocks returns lives and copies during which the clock leaps, and leaps back.
func (d dice) clocks() [][]Step {
	tracks := pick(d, dice.calls, dice.copies)(d)
	for _, track := range tracks {
		for i := range track {
			track[i].Fault = nil
		}
	}
	for i := range tracks[0] {
		if i%3 == 1 {
			tracks[0][i].Fault = &Fault{Kind: "clock", On: d.IntN(2), After: d.ms(0, 100), For: d.ms(100, 3000)}
		}
	}
	return tracks
}
