package adversary

import "testing"

// TestWorldThatCannotBegin has storage whose configuration the driver refuses. All that was made is taken down.
func TestWorldThatCannotBegin(t *testing.T) {
	setup := overStrictAPI()
	setup.Config = func(*world, Variant) string { return "unknown: true" }
	if w, err := newWorld(t, setup, NewTally(), nil, patient()); err == nil || w != nil {
		t.Errorf("got the world %v and %v, want an error alone", w, err)
	}
}
