package doctor

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Verdict is how bad a Finding is.
type Verdict string

// The Verdicts, the worst first.
const (
	// Broken does not end by itself.
	Broken Verdict = "broken"
	// Waiting ends when the named component has done its part.
	Waiting Verdict = "waiting"
	// Fine needs nothing.
	Fine Verdict = "fine"
)

// Finding is one thing that was found out about one object.
type Finding struct {
	Object  string  `json:"object"` // its kind and name, such as "claim default/data"
	Verdict Verdict `json:"verdict"`
	Says    string  `json:"says"`            // what is the case, and which step waits on which component
	Proof   string  `json:"proof,omitempty"` // the event, condition or error that shows it, word for word
	Advice  string  `json:"advice,omitempty"`
}

// Write prints findings for people, the worst first. Each object and sentence is printed once.
func Write(out io.Writer, findings []Finding) error {
	var text strings.Builder
	for _, f := range Sort(findings) {
		fmt.Fprintf(&text, "%-8s %s: %s.\n", strings.ToUpper(string(f.Verdict)), f.Object, strings.TrimSuffix(f.Says, "."))
		if f.Proof != "" {
			fmt.Fprintf(&text, "         seen: %s\n", oneLine(f.Proof))
		}
		if f.Advice != "" {
			fmt.Fprintf(&text, "         do:   %s\n", f.Advice)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// Sort returns the findings without repetitions, the worst first, and otherwise in the order in which they were found.
func Sort(findings []Finding) (sorted []Finding) {
	rank := []Verdict{Broken, Waiting, Fine}
	seen := map[Finding]bool{}
	for _, f := range findings {
		if !seen[f] {
			seen[f] = true
			sorted = append(sorted, f)
		}
	}
	slices.SortStableFunc(sorted, func(a, b Finding) int {
		return cmp.Compare(slices.Index(rank, a.Verdict), slices.Index(rank, b.Verdict))
	})
	return sorted
}

// oneLine keeps what others wrote, an error of a driver for instance, from forging lines or moving the cursor.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
