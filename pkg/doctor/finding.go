package doctor

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Verdict is the severity of a Finding.
type Verdict string

// The Verdicts, the worst first.
const (
	// Broken does not end by itself.
	Broken Verdict = "broken"
	// Waiting ends when the named component has done its part.
	Waiting Verdict = "waiting"
	// Fine needs no action.
	Fine Verdict = "fine"
)

// Finding is one fact about one object.
type Finding struct {
	Object  string  `json:"object"` // its kind and name, for example "claim default/data"
	Verdict Verdict `json:"verdict"`
	Says    string  `json:"says"`            // the state, and which step waits for which component
	Proof   string  `json:"proof,omitempty"` // the event, condition or error as evidence, verbatim
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

// Sort returns the findings without repetitions, the worst first, and otherwise in their original order.
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

// oneLine prevents the text of others, for example a driver's error, from forging lines or moving the cursor.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
