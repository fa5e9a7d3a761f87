package holders

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Holder is a user of the subject.
type Holder struct {
	PID     int    // 0 for a mount in the mount namespace of this process
	Command string // the process's name (proc_pid_comm(5))
	Use     string // how it uses the subject, as a part of a sentence
	IsCopy  bool   // its mount namespace has the subject mounted, perhaps without a user
}

// Found is the outcome of a search.
type Found struct {
	Holders []Holder
	// Partial says that there may be more holders: the search was cut short, or /proc does not show all processes.
	Partial bool
}

// String names the holders as a part of a sentence.
func (f Found) String() string {
	const shown = 5
	var parts []string
	for i, h := range f.Holders {
		if i == shown {
			parts = append(parts, fmt.Sprintf("and %d more", len(f.Holders)-shown))
			break
		}
		parts = append(parts, h.String())
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case f.Partial:
		return "who uses it cannot be seen from here: the driver runs in a PID namespace of its own (hostPID), or the " +
			"search took too long"
	}
	return "nobody is found any more who uses it"
}

// String names the holder as a part of a sentence.
func (h Holder) String() string {
	if h.PID == 0 {
		return h.Use
	}
	return fmt.Sprintf("process %d (%s) %s", h.PID, h.Command, h.Use)
}

// Of searches for the users of the subject until the context ends.
func Of(ctx context.Context, s Subject) Found {
	search := search{subject: s, namespaces: map[string][]place{}}
	search.found.Partial = !seesAll()
	search.ownNamespace()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		search.found.Partial = true
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if ctx.Err() != nil {
			search.found.Partial = true
			break
		}
		search.process(pid)
	}
	return search.found
}
