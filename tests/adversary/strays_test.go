package adversary

import "testing"

// TestStraysEndWithTheirSchedule lets a disturbed schedule leave a stray snapshot: the next schedule is not blamed for
// it. More snapshots than requests that nobody was answered are no strays.
func TestStraysEndWithTheirSchedule(t *testing.T) {
	w, err := newWorld(t, overStrictAPI(), NewTally(), nil, patient())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	a := newActor(w, 0, nil)
	for _, op := range []Op{Create, Snapshot} {
		a.step(Step{Op: op, MiB: 8})
	}
	stray := []string{a.snapshots[0].id}
	a.snapshots[0] = nil
	clear(a.ledger.snapshots)
	w.disturbed.Store(true)
	if w.strayed(stray) {
		t.Error("got a stray although each request was answered")
	}
	w.shots.Add(-1) // as if nobody had been told
	if !w.strayed(stray) || w.strayed([]string{stray[0], "snap-0another"}) || w.strayed([]string{"vol-0another"}) {
		t.Error("want one snapshot to be a stray, and neither two nor a volume")
	}
	w.settle([]*actor{a})
	if len(w.wrong) > 0 {
		t.Fatalf("the disturbed schedule: %q", w.wrong)
	}
	if wrong := w.run(Schedule{Tracks: [][]Step{{{Op: Create, MiB: 8}, {Op: Snapshot}}}}); len(wrong) > 0 {
		t.Errorf("the quiet one after it: %q", wrong)
	}
}
