package nfs

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// creation is a call that creates something, with the lookup of its name.
type creation struct{ create, find func() error }

// creations returns all calls that create something on the share of a spec, from a volume and a snapshot there.
func (w *world) creations(spec backends.Spec, volume, snapshot string) map[string]creation {
	ctx := w.Context()
	s := backends.SnapshotSpec{Name: "s", Volume: volume}
	g := backends.GroupSpec{Name: "g", Volumes: []string{volume}}
	find := func() error { return second(w.Find(ctx, spec)) }
	findSnapshot := func() error { return second(w.FindSnapshot(ctx, s)) }
	findGroup := func() error { return second(w.FindGroup(ctx, g.Name)) }
	return map[string]creation{
		"create":   {func() error { return second(w.Create(ctx, spec)) }, find},
		"clone":    {func() error { return second(w.Clone(ctx, spec, volume)) }, find},
		"restore":  {func() error { return second(w.Restore(ctx, spec, snapshot)) }, find},
		"snapshot": {func() error { return second(w.CreateSnapshot(ctx, s)) }, findSnapshot},
		"group":    {func() error { return second(w.CreateGroup(ctx, g)) }, findGroup},
	}
}

// isFinal reports whether a sidecar forgets an item after a refusal. For lack of rights, package volume first looks the
// item up.
func isFinal(refusal, looked error) bool {
	if backends.Is(refusal, backends.Denied) {
		return backends.Is(looked, backends.NotFound)
	}
	return !again(refusal) && !backends.Is(refusal, backends.Unusable)
}

// The share may hold the item: an earlier call has created it, and its answer was lost.
func TestNoRefusalIsFinalForALostShare(t *testing.T) {
	kept := ShareConfig{Name: "kept", Server: testServer, Share: testShare + "/kept"}
	lost := ShareConfig{Name: "lost", Server: testServer, Share: testShare}
	named := func(name string) backends.Spec { return onShare(name, lost.Name) }
	for name, row := range map[string]struct {
		spec       func(name string) backends.Spec
		onlyShares bool
		says       []string
	}{
		"not configured": {named, false, []string{`"lost"`, "add it again", `"kept"`}},
		"not allowed":    {specOf, true, []string{testShare, "onlyShares", `"kept"`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must(os.Mkdir(w.path("kept"), 0o755))
			w.config = &Config{Shares: []ShareConfig{kept, lost}}
			w.reopen()
			v := w.make(row.spec("one"))
			s, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
			w.must(err)
			w.config = &Config{Shares: []ShareConfig{kept}, OnlyShares: row.onlyShares}
			w.reopen()
			for what, call := range w.creations(row.spec("one"), v.Handle, s.Handle) {
				refusal, looked := call.create(), call.find()
				if isFinal(refusal, looked) {
					t.Errorf("%s: the refusal is final: %v (%s)", what, refusal, backends.KindOf(refusal))
				}
				w.fails(what, refusal, backends.KindOf(refusal), row.says...)
			}
		})
	}
}
