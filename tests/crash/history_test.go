package crash

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// history records events in order.
type history struct {
	mu     sync.Mutex
	events []event
}

type event struct {
	at   time.Time
	text string
}

func (h *history) add(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event{time.Now(), fmt.Sprintf(format, args...)})
}

func (h *history) all() []event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// merge formats the last events of several histories in order; 0 means all.
func merge(last int, histories ...*history) string {
	var all []event
	for _, h := range histories {
		all = append(all, h.all()...)
	}
	slices.SortStableFunc(all, func(a, b event) int { return a.at.Compare(b.at) })
	if last > 0 {
		all = all[max(0, len(all)-last):]
	}
	var text strings.Builder
	for _, e := range all {
		fmt.Fprintf(&text, "  %s %s\n", e.at.Format("15:04:05.000"), e.text)
	}
	return text.String()
}

// errorf is fmt.Errorf for a violation without a causing error.
func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// violated records the first violation and ends all work. w is nil for a violation of the process.
func (r *run) violated(w *worker, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.violation == nil {
		r.violation, r.violator = err, w
	}
	r.cancel()
}

// complain fails the test if there was a violation, with all information that explains it.
func (r *run) complain(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.violation == nil || t.Failed() {
		return
	}
	histories := []*history{&r.history}
	if r.violator != nil {
		histories = append(histories, &r.violator.history)
	}
	notable := r.log(t).notable
	t.Errorf("VIOLATION with seed %d: %v\nhistory of it:\n%sthe driver's log, the last lines of level info and above:\n%s",
		r.seed, r.violation, merge(60, histories...), bytes.Join(notable[max(0, len(notable)-30):], nil))
}

// keepLogs saves the whole log and the whole history.
func (r *run) keepLogs(t *testing.T, log []byte) {
	t.Helper()
	if *keep == "" {
		return
	}
	histories := []*history{&r.history}
	for _, w := range r.workers {
		histories = append(histories, &w.history)
	}
	base := filepath.Join(*keep, fmt.Sprintf("crash-%d", r.seed))
	err := cmp.Or(os.MkdirAll(*keep, 0o755), os.WriteFile(base+"-driver.log", log, 0o600),
		os.WriteFile(base+"-history.log", []byte(merge(0, histories...)), 0o600))
	if err != nil {
		t.Error(err)
	}
}
