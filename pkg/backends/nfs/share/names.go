package share

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

const (
	// mostNames is the maximum number of wanted entries in a folder.
	mostNames = 1 << 20
	// mostSeen is the maximum number of entries in a folder: a server can invent names for ever. Unwanted names are not
	// kept, so filling a folder with others stops nothing.
	mostSeen = 1 << 24
	// mostNameBytes is the maximum memory for the names of a folder. The snapshots of 100,000 volumes take half of it:
	// each has a record and a directory, and a name of up to 60 bytes.
	mostNameBytes = 32 << 20
	// nameBytes is the memory of a name besides its text: the string, and the spare room of lists.
	nameBytes = 32
)

// Names lists the entries of a folder that end with the suffix, without the suffix. If there are more than any folder
// has, it lists some, and fails with ErrFlooded. Kinds: Unavailable then.
func (h *Home) Names(folder, suffix string) ([]string, error) {
	return h.namesBut(folder, func(name string) (string, bool) { return strings.CutSuffix(name, suffix) })
}

// NamesOf lists the entries of a folder that begin with the prefix and end with the suffix, in full. Kinds: as Names.
func (h *Home) NamesOf(folder, prefix, suffix string) ([]string, error) {
	return h.namesBut(folder, func(name string) (string, bool) {
		return name, strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix)
	})
}

// namesBut lists the wanted entries of a folder.
func (h *Home) namesBut(folder string, want func(name string) (string, bool)) ([]string, error) {
	if err := h.Charge(0); err != nil {
		return nil, err
	}
	dir, err := h.files.Folder(At(folder, ""))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // read only
	all, err := listed(dir, mostSeen, mostNames, want, h.Charge)
	if errors.Is(err, ErrFlooded) {
		return all, backends.Errorf(backends.Unavailable,
			"the names in %s are too many, look what the server shows there: %w", dir.Name(), err)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// listed returns the wanted names in a directory, up to the limits.
func listed(dir *os.File, seen, most int, want func(name string) (string, bool),
	charge func(bytes int) error) (all []string, err error) {
	budget := NewBudget(mostNameBytes)
	err = eachName(dir, seen, func(name string) error {
		short, wanted := want(name)
		if !wanted {
			return charge(0)
		}
		if len(all) >= most {
			return backends.Errorf(backends.Unavailable, "more than %d: %w", most, ErrFlooded)
		}
		if err := budget.Spend(len(name) + nameBytes); err != nil {
			return err
		}
		all = append(all, short)
		return charge(len(name) + nameBytes)
	})
	return all, err
}

// eachName calls do for each name in a directory, up to a maximum. Kinds: Unavailable for more.
func eachName(dir *os.File, most int, do func(name string) error) error {
	const batch = 4096
	for seen := 0; ; {
		names, err := dir.Readdirnames(batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if seen += len(names); seen > most {
			return backends.Errorf(backends.Unavailable, "more than %d: %w", most, ErrFlooded)
		}
		for _, name := range names {
			if err := do(name); err != nil {
				return err
			}
		}
	}
}
