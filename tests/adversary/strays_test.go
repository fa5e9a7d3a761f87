package adversary

import "testing"

// TestStraysEndWithTheirSchedule lets a disturbed schedule leave a stray snapshot: the next schedule is not blamed for
// it.
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
	a.snapshots[0] = nil
	clear(a.ledger.snapshots)
	w.disturbed.Store(true)
	w.settle([]*actor{a})
	if len(w.wrong) > 0 {
		t.Fatalf("the disturbed schedule: %q", w.wrong)
	}
	if wrong := w.run(Schedule{Tracks: [][]Step{{{Op: Create, MiB: 8}, {Op: Snapshot}}}}); len(wrong) > 0 {
		t.Errorf("the quiet one after it: %q", wrong)
	}
}
