package adversary

import "testing"

// TestLargeVolumesAreRead shows that a foreign version in a large volume is found at the end, whether the volume is in
// use then or not.
func TestLargeVolumesAreRead(t *testing.T) {
	for name, last := range map[string]Op{"in use": Pause, "not in use": Leave} {
		t.Run(name, func(t *testing.T) {
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
			for _, s := range []Step{{Op: Create, MiB: 8}, {Op: Use}, {Op: Write, Count: 4}, {Op: last}} {
				a.step(s)
			}
			v := a.volumes[0]
			if v == nil || !v.large() || len(w.wrong) > 0 {
				t.Fatalf("got the volume %v and %q, want a large one", v, w.wrong)
			}
			if w.held([]*actor{a}); len(w.wrong) > 0 {
				t.Fatalf("the right contents: got %q, want nothing", w.wrong)
			}
			if last == Pause {
				a.step(Step{Op: Use})
			}
			w.cloud.Server.Write(v.id, `{"f0": 4711}`)
			if w.held([]*actor{a}); len(w.wrong) == 0 || class(w.wrong[0]) != "acknowledged data" {
				t.Errorf("got %q, want a violation about acknowledged data", w.wrong)
			}
		})
	}
}

// TestWritten distinguishes volumes with data, and copies of such, from others.
func TestWritten(t *testing.T) {
	full := newContents(vector{"f0": 1})
	for name, test := range map[string]struct {
		volume *volume
		want   bool
	}{
		"new":             {&volume{contents: newContents(nil)}, false},
		"written to":      {&volume{contents: full}, true},
		"a copy":          {&volume{origin: &copied{source: full}}, true},
		"a copy of a new": {&volume{origin: &copied{source: newContents(nil)}}, false},
	} {
		if got := test.volume.written(); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}
