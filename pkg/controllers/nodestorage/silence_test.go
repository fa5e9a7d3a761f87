package nodestorage

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// look updates the first master's cache and reconciles at a time. It returns the number of new events about a silent
// worker, and the time until the next reconciliation.
func (s *simulation) look(at time.Time) (told int, again time.Duration) {
	s.Helper()
	s.masters[0].now = func() time.Time { return at }
	s.see(0, 2)
	node := types.NamespacedName{Namespace: "ns", Name: "node"}
	result, err := s.masters[0].Reconcile(s.Context(), ctrl.Request{NamespacedName: node})
	s.must(err)
	return strings.Count(s.told(), "WorkerSilent"), result.RequeueAfter
}

// TestSilentWorker checks that one event reports, after ten minutes, a worker that does not begin offers or, later,
// deletions, and that there are no events once it is back.
func TestSilentWorker(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.settle(0, 2)
	s.report()
	at := time.Now()
	for round, what := range []string{"offers", "deletions"} {
		s.look(at) // They are written.
		s.look(at)
		if told, again := s.look(at.Add(9 * time.Minute)); told > 0 || again != time.Minute {
			t.Errorf("%s: after nine minutes people were told %d times, and it looks again in %v", what, told, again)
		}
		if told, again := s.look(at.Add(10 * time.Minute)); told != 1 || again != 0 {
			t.Errorf("%s: after ten minutes people were told %d times, want once, and it looks again in %v", what, told, again)
		}
		at = at.Add(time.Hour)
		if told, _ := s.look(at); told > 0 {
			t.Errorf("%s: people were told again", what)
		}
		s.report()
		s.look(at)
		if told, again := s.look(at.Add(time.Hour)); told > 0 || again != 0 {
			t.Errorf("%s: when all was taken up people were told %d times, and it looks again in %v", what, told, again)
		}
		at = at.Add(2 * time.Hour)
		if round == 0 {
			s.bind()
			s.look(at) // They are deleted.
		}
	}
}
