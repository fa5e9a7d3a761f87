package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// report prints the table of all scenarios.
func report(out io.Writer, tallies []*tally) {
	errnos := errnoColumns(tallies)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "scenario\tpoints\tcalls\tkills\t%s\ttime-outs\trecovered\tmissed\tviolations\t\n",
		strings.Join(errnos, "\t"))
	total := &tally{Scenario: "total", Errors: map[string]int{}}
	for _, t := range tallies {
		t.row(table, errnos)
		total.add(t)
	}
	total.row(table, errnos)
	_ = table.Flush() // to a terminal
	for _, t := range tallies {
		t.details(out)
	}
}

func errnoColumns(tallies []*tally) []string {
	all := map[string]bool{}
	for _, t := range tallies {
		for name := range t.Errors {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (t *tally) row(out io.Writer, errnos []string) {
	var counts strings.Builder
	for _, name := range errnos {
		fmt.Fprintf(&counts, "%d\t", t.Errors[name])
	}
	fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%s%d\t%d\t%d\t%d\t\n", t.Scenario, t.Points, t.Calls, t.Kills, counts.String(),
		t.TimeOuts, t.Recovered, t.Missed, len(t.Violations))
}

func (t *tally) add(o *tally) {
	t.Points += o.Points
	t.Calls = max(t.Calls, o.Calls)
	t.Kills += o.Kills
	t.TimeOuts += o.TimeOuts
	t.Recovered += o.Recovered
	t.Missed += o.Missed
	t.Violations = append(t.Violations, o.Violations...)
	for name, n := range o.Errors {
		t.Errors[name] += n
	}
}

// details prints the data that does not fit into the table.
func (t *tally) details(out io.Writer) {
	for _, p := range t.Listing {
		fmt.Fprintf(out, "%s: %s\n", t.Scenario, p)
	}
	for _, u := range t.Unsteady {
		fmt.Fprintf(out, "not the same in two undisturbed runs: %s: %s\n", t.Scenario, u)
	}
	for _, o := range t.Overran {
		fmt.Fprintf(out, "held beyond the request's time: %s: %s\n", t.Scenario, o)
	}
}
