package nfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/tests/stall"
)

// beforeTheEndOf runs do while the server hides an entry of the driver's directory, as if it exported another one. It
// shows the entry again after the first failed lookup, when the identity is checked.
func (w *world) beforeTheEndOf(t *testing.T, slow *stall.Server, hidden string, do func() error) error {
	t.Helper()
	path := w.path(share.HomeName, hidden)
	w.must(os.Rename(path, path+".aside"))
	if filepath.Ext(path) == "" {
		w.must(os.Mkdir(path, 0o755))
	}
	slow.StopAt(t, stall.Open, 1)
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	w.eventually("looking at the identity", func() bool { return slow.Stopped(t) })
	_ = os.Remove(path) // the empty one
	w.must(os.Rename(path+".aside", path))
	slow.Continue(t)
	return <-ended
}

// A server exports something else for a moment. That ends between the lookup of a record and the check whether this is
// the right share. So the absence of the record says nothing.
func TestOutageThatEndsMeanwhile(t *testing.T) {
	const attempt = "00000000000000000000000000000000-0000000000000000"
	spec := onSlow("one")
	spec.Parameters.(*Parameters).SubDir = "dir/one"
	for name, row := range map[string]struct {
		hidden string
		do     func(w *world, r *record, s *share.Share, h *share.Home) error
	}{
		"finding": {
			share.Volumes,
			func(w *world, _ *record, _ *share.Share, _ *share.Home) error {
				return second(w.Find(t.Context(), spec))
			},
		},
		"dropping the claim of the dead": {
			share.Volumes,
			func(w *world, r *record, s *share.Share, h *share.Home) error {
				return w.unclaimDead(s, h, claimOf(r.SubDir), r.key())
			},
		},
		"removing the draft of the dead": {
			filepath.Join(share.Staging, attempt+suffix),
			func(w *world, _ *record, s *share.Share, h *share.Home) error {
				return second(w.janitors.draft(s, h, attempt, []string{attempt}))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, slow := newSlowWorld(t)
			w.root = slow.Real
			w.quiet(spec)
			r := w.recordOf(w.make(spec))
			living := *r
			living.ID, living.Turn, _ = strings.Cut(attempt, "-")
			data, err := living.encode()
			w.must(err)
			w.write(string(data), share.HomeName, share.Staging, attempt+suffix)
			w.write("draft", share.HomeName, share.Staging, attempt, "file")
			s, h := w.opened(spec)
			w.must(w.beforeTheEndOf(t, slow, row.hidden, func() error { return row.do(w, r, s, h) }))
			w.isWhole(spec, r)
			if _, err := os.Stat(w.path(share.HomeName, share.Staging, attempt, "file")); err != nil {
				t.Errorf("the draft of the living: %v", err)
			}
		})
	}
}
