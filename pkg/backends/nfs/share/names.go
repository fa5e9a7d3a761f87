package share

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

const (
	// mostNames is more entries than any folder has: a server can make up names for ever.
	mostNames = 1 << 20
	// mostNameBytes is what the names of a folder may take in memory. The snapshots of 100,000 volumes take half of it:
	// each has a record and a directory, and a name up to 60 bytes.
	mostNameBytes = 32 << 20
	// nameBytes is what a name takes besides its text: the string, and the room that lists have to spare.
	nameBytes = 32
)

// Names lists the entries of a folder that end with the suffix, without it. Kinds: Unavailable for more than any folder
// has.
func (h *Home) Names(folder, suffix string) ([]string, error) {
	return h.namesBut(folder, func(name string) (string, bool) { return strings.CutSuffix(name, suffix) })
}

// NamesOf lists the entries of a folder that begin with the prefix, whole. Kinds: as Names.
func (h *Home) NamesOf(folder, prefix string) ([]string, error) {
	return h.namesBut(folder, func(name string) (string, bool) { return name, strings.HasPrefix(name, prefix) })
}

// namesBut lists what is wanted of the entries of a folder.
func (h *Home) namesBut(folder string, want func(name string) (string, bool)) ([]string, error) {
	dir, err := h.files.Folder(At(folder, ""))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // read only
	var all []string
	budget := NewBudget(mostNameBytes)
	err = eachName(dir, mostNames, func(name string) error {
		short, wanted := want(name)
		if !wanted {
			return nil
		}
		all = append(all, short)
		if err := budget.Spend(len(name) + nameBytes); err != nil {
			return err
		}
		return h.Charge(len(name) + nameBytes)
	})
	if errors.Is(err, ErrFlooded) {
		err = backends.Errorf(backends.Unavailable, "the names in %s are too many, look what the server shows there: %w",
			dir.Name(), err)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// eachName does something with each name in a directory, of which there may be so many. Kinds: Unavailable for more.
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
