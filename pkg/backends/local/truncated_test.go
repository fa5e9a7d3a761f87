package local

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// TestTruncatedImages truncates images: a copy would have zeros in place of the lost data.
func TestTruncatedImages(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs"} {
		t.Run(fsType, func(t *testing.T) {
			f := newPoolOn(t, fsType)
			v, other := f.create("image", "one"), f.create("image", "two")
			s := f.snapshot("whole", v.Handle)
			must(t, os.Truncate(f.data(v.Handle), 1<<20))
			held, err := f.stock.snapshots.get(s.Handle)
			must(t, err)
			must(t, os.Truncate(held.data(), 1<<20))
			full := specIn("image", "c")
			full.Parameters.(*Parameters).Allocation = "full"
			for what, err := range map[string]error{
				"CreateSnapshot": second(f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})),
				"CreateGroup": second(f.CreateGroup(t.Context(),
					backends.GroupSpec{Name: "g", Volumes: []string{other.Handle, v.Handle}})),
				"Clone":       second(f.Clone(t.Context(), specIn("image", "c"), v.Handle)),
				"Clone, full": second(f.Clone(t.Context(), full, v.Handle)),
				"Restore":     second(f.Restore(t.Context(), specIn("image", "r"), s.Handle)),
				"Source":      second(f.Source(t.Context(), backends.Attachment{Handle: v.Handle})),
			} {
				hasKind(t, what+" of a truncated image", err, backends.Unavailable, "1048576 bytes of 4194304")
			}
			f.hasHealth(v.Handle, backends.DataLoss, "ImageTruncated")
			f.holdsOnly("volumes/"+v.Handle, "volumes/"+other.Handle, "snapshots/"+s.Handle)
			f.promised(12 << 20)
		})
	}
}

// lookedAt is a context that runs a function when it is checked.
type lookedAt struct {
	context.Context
	then func()
}

func (l lookedAt) Err() error { l.then(); return l.Context.Err() }

// TestImageTruncatedWhileItIsCopied truncates the image after the copy has begun.
func TestImageTruncatedWhileItIsCopied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	must(t, os.WriteFile(path, make([]byte, 4<<20), 0o600))
	ctx := lookedAt{t.Context(), func() { must(t, os.Truncate(path, 1<<20)) }}
	err := dataCopy{from: path, to: path + ".copy", size: 4 << 20}.run(ctx)
	hasKind(t, "the copy", err, backends.Unavailable, "1048576 bytes of 4194304")
}
