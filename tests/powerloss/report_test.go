package powerloss

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// report is the table at the end.
type report struct{ rows []row }

// row is the result of one recording under one model.
type row struct {
	recording                          *recording
	model                              model
	cuts, volumes, whole, gone, broken int
	unmounted                          int
	slowest, sum                       time.Duration
}

func (r *report) add(rec *recording, m model, losses []loss) row {
	line := row{recording: rec, model: m, cuts: len(losses)}
	for _, l := range losses {
		line.volumes += l.volumes
		line.whole += l.verdict.whole
		line.gone += l.verdict.gone
		line.slowest = max(line.slowest, l.elapsed)
		line.sum += l.elapsed
		if l.unmounted != nil {
			line.unmounted++
		} else if len(l.verdict.violations) > 0 {
			line.broken++
		}
	}
	r.rows = append(r.rows, line)
	return line
}

func (r *report) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "filesystem\tscript\tsyncs left out\twrites\tflushes\tmodel\tcuts\t"+
		"volumes recovered\tin flight: whole\tgone\tmount refused\tVIOLATIONS\tmean\tslowest\t")
	for _, l := range r.rows {
		writes, flushes := l.recording.count()
		lie := "-"
		if l.recording.manner.lie != noLie {
			lie = string(l.recording.manner.lie)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t%v\t\n", l.recording.filesystem.name,
			l.recording.manner.name, lie,
			writes, flushes, l.model, l.cuts, l.volumes, l.whole, l.gone, l.unmounted, l.broken,
			(l.sum / time.Duration(max(1, l.cuts))).Round(100*time.Microsecond), l.slowest.Round(time.Millisecond))
	}
	w.Flush()
	return text.String()
}

// count returns the numbers of writes and flushes.
func (r *recording) count() (writes, flushes int) {
	for _, e := range r.entries {
		switch {
		case e.onDrive():
			writes++
		case e.kind == flushed:
			flushes++
		}
	}
	return writes, flushes
}

// shown is the number of losses of one kind that are described in full.
const shown = 3

// complain fails the test if there was a violation, and describes the first losses in full.
func complain(t *testing.T, r *recording, losses []loss) {
	t.Helper()
	told := 0
	for _, l := range losses {
		if l.unmounted == nil && len(l.verdict.violations) == 0 {
			continue
		}
		if told++; told <= shown {
			t.Error(l.describe(r))
		}
	}
	if told > shown {
		t.Errorf("and %d more like these", told-shown)
	}
}

// describe describes a loss in full.
func (l loss) describe(r *recording) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s, cut %s of %d entries, in flight: %s\n", r.filesystem.name, r.manner.name, l.cut,
		len(r.entries), l.inFlight)
	if l.unmounted != nil {
		fmt.Fprintf(&text, "  the filesystem cannot be mounted: %v\n%s", l.unmounted, l.kernel)
	}
	for _, v := range l.verdict.violations {
		fmt.Fprintf(&text, "  VIOLATION: %s\n", v)
	}
	return text.String() + l.tree
}
