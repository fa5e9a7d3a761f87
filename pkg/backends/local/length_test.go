package local

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// TestCopiesHoldTheWholeImage has images that are larger than their records say. The node uses all of an image, so that
// a copy without its end would lose data.
func TestCopiesHoldTheWholeImage(t *testing.T) {
	for name, change := range map[string]func(*volumeRecord){
		"an expansion was cut short": func(r *volumeRecord) { r.SizeBytes, r.ExpandingFromBytes = 8<<20, 4<<20 },
		"it was enlarged by hand":    func(*volumeRecord) {},
	} {
		for _, fsType := range []string{"ext4", "xfs"} {
			t.Run(name+", "+fsType, func(t *testing.T) {
				f := newPoolOn(t, fsType)
				v := f.create("image", "one")
				f.rewrites(v.Handle, change)
				must(t, os.Truncate(f.data(v.Handle), 8<<20))
				f.copiesHave(t, v.Handle, "data", 6<<20, 8<<20)
			})
		}
	}
}

// copiesHave writes text at an offset of an image. It checks that all kinds of copies have the text, and the length of
// the image in bytes.
func (f *fixture) copiesHave(t *testing.T, handle, text string, offset, length int64) {
	t.Helper()
	file, err := os.OpenFile(f.data(handle), os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteAt([]byte(text), offset)
	must(t, errors.Join(err, file.Close()))
	s := f.snapshot("s", handle)
	g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{handle}})
	must(t, err)
	allocated := specIn("image", "allocated")
	allocated.Parameters.(*Parameters).Allocation = full
	for what, create := range map[string]func() (*backends.Volume, error){
		"a clone": func() (*backends.Volume, error) { return f.Clone(t.Context(), specIn("image", "clone"), handle) },
		"a clone with all its blocks": func() (*backends.Volume, error) {
			return f.Clone(t.Context(), allocated, handle)
		},
		"a clone in another pool": func() (*backends.Volume, error) {
			return f.Clone(t.Context(), specIn("other", "elsewhere"), handle)
		},
		"a restored snapshot": func() (*backends.Volume, error) {
			return f.Restore(t.Context(), specIn("image", "restored"), s.Handle)
		},
		"a restored member": func() (*backends.Volume, error) {
			return f.Restore(t.Context(), specIn("image", "member"), g.Snapshots[0].Handle)
		},
	} {
		made, err := create()
		must(t, err)
		have := textAt(t, f.data(made.Handle), offset, len(text))
		if have != text || made.CapacityBytes != length {
			t.Errorf("%s has %d bytes, and %q at byte %d, want %d and %q", what, made.CapacityBytes, have, offset, length, text)
		}
	}
}

// textAt reads n bytes at an offset of a file; fewer at its end.
func textAt(t *testing.T, path string, offset int64, n int) string {
	t.Helper()
	file, err := os.Open(path)
	must(t, err)
	defer file.Close()
	text := make([]byte, n)
	n, err = file.ReadAt(text, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return string(text[:n])
}
