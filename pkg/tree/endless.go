package tree

import (
	"errors"
	"fmt"
)

// ErrEndless means that a directory keeps showing names, so that the walk would not end: the filesystem's server makes
// them up, or a process creates entries all the time. A retry continues where the walk has ended.
var ErrEndless = errors.New("the directory has no end")

const (
	// mostRemoved is how many entries one removal tries to remove. A larger tree takes several.
	mostRemoved = 1 << 24
	// mostBarren is how often in a row a directory may show only names without entries. Another process may be removing
	// the same entries, and the kernel may still show removed names for a moment.
	mostBarren = 3
	// mostGone is how many names in a row may have no entries. That many may be removed while the walk reads.
	mostGone = 1 << 20
	// mostRaces is how often to try to open an entry while renames prevent that.
	mostRaces = 1000
)

// gone counts consecutive names without entries.
type gone struct{ count, most int }

// next records whether a name has no entry. It fails with ErrEndless after too many of them.
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
