package openfiles

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	// Usual is a bound that is sufficient for large clusters.
	Usual = 65536
	// least is the lowest bound. With less, a process starts but fails under normal load.
	least = 256
)

// Bound is how many files this process, and each program that it runs, may have open; 0 for no further bound.
type Bound int

// Bind adds the flag --max-open-files with its default.
func (b *Bound) Bind(flags interface {
	IntVar(value *int, name string, usual int, usage string)
}, usual int) {
	text := "how many files this process, and each program that it runs, may have open; a lower bound that is there stays"
	if usual == 0 {
		text += " (default: no further bound)"
	}
	flags.IntVar((*int)(b), "max-open-files", usual, text)
}

// Check refuses a bound that is too low to work with.
func (b Bound) Check() error {
	if b != 0 && b < least {
		return fmt.Errorf("--max-open-files is %d: it must be %d at least, or 0 for no further bound", b, least)
	}
	return nil
}

// Apply sets the bound as the soft and the hard limit, because a soft limit alone can be raised again. A lower existing
// bound stays.
func (b Bound) Apply() error {
	if err := b.Check(); err != nil || b == 0 {
		return err
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return err
	}
	most := min(uint64(b), now.Max)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return fmt.Errorf("--max-open-files: the bound cannot be %d: %w", most, err)
	}
	return nil
}
