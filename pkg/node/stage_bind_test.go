package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// The source of a volume becomes another directory, or another device, after it was found: it is not bound.
func TestAnotherSourceIsNotBound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounting needs root")
	}
	dir := t.TempDir()
	for _, name := range []string{"source", "place"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	begun := func(place string) *staging {
		return &staging{
			recipe: recipe{place: filepath.Join(dir, place)},
			device: &device.Device{Path: "/dev/null", Major: 4095, Minor: 1},
			want: ledger.Staging{Source: ledger.Source{Path: filepath.Join(dir, "source")},
				Root: ledger.Root{Dev: 1, Ino: 1}},
		}
	}
	for name, err := range map[string]error{
		"place":  begun("place").bindDirectory(t.Context()),
		"device": begun("device").bindNode(),
	} {
		if !backends.Is(err, backends.Unavailable) {
			t.Errorf("binding it ended with %v (Kind %s), want Kind %s", err, backends.KindOf(err), backends.Unavailable)
		}
		if mounted, err := mount.Mounted(t.Context(), filepath.Join(dir, name)); mounted || err != nil {
			t.Errorf("mounted at %s: %t, %v", name, mounted, err)
			_ = mount.Unmount(t.Context(), filepath.Join(dir, name)) // so that the directory can be removed
		}
	}
}
