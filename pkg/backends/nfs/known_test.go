package nfs

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
)

// A note that cannot be moved to its place leaves no draft, and an earlier draft does no harm.
func TestNoteLeavesNoDraft(t *testing.T) {
	w := world{TB: t}
	dir := t.TempDir()
	address, err := export.Parse("server", "/export", "")
	w.must(err)
	k, err := openKnown(dir, nil, func(export.Address) bool { return true }, slog.New(slog.DiscardHandler))
	w.must(err)
	k.path = filepath.Join(dir, "taken")
	w.must(os.MkdirAll(filepath.Join(k.path, "by a folder"), 0o700))
	k.add(place{Address: address}, homeID{1})
	k.path = filepath.Join(dir, knownFile)
	w.must(os.WriteFile(k.path+".new", nil, 0o400))
	k.add(place{Address: address}, homeID{2})

	names, err := filepath.Glob(filepath.Join(dir, "*"))
	w.must(err)
	if want := []string{k.path, filepath.Join(dir, "taken")}; !slices.Equal(names, want) {
		t.Errorf("there is %q, want %q", names, want)
	}
	again, err := openKnown(dir, nil, func(export.Address) bool { return true }, slog.New(slog.DiscardHandler))
	w.must(err)
	if !again.used(place{Address: address}) {
		t.Error("the share is not noted")
	}
}
