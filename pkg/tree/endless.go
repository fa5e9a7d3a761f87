package tree

import (
	"errors"
	"fmt"
)

// ErrEndless says that a directory goes on showing names, so that the walk would have no end: the server of the
// filesystem makes them up, or somebody makes entries all the time. Who tries again goes on where it has ended.
var ErrEndless = errors.New("the directory has no end")

const (
	// mostRemoved is how many entries one removal tries to remove. A tree that has more takes several.
	mostRemoved = 1 << 24
	// mostBarren is how often in a row a directory may show only what is not there. Another process may be removing the
	// same, and the kernel may show names for a moment that it has removed.
	mostBarren = 3
	// mostGone is how many names in a row a walk finds to be of nothing. That many may be removed while it reads.
	mostGone = 1 << 20
	// mostRaces is how often an entry is opened that a rename keeps from being opened.
	mostRaces = 1000
)

// gone counts names of what is not there, one after the other.
type gone struct{ count, most int }

// next notes whether a name was one. It fails with ErrEndless after too many.
func (g *gone) next(isGone bool) error {
	if !isGone {
		g.count = 0
		return nil
	}
	if g.count++; g.count >= g.most {
		return fmt.Errorf("%w: it has shown %d names in a row of what is not there", ErrEndless, g.count)
	}
	return nil
}
