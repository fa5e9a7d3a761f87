package filesystem

import (
	"os"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/internal/samples"
)

// bytesAt writes fixed bytes at fixed places; negative places count from the end.
func bytesAt(pairs ...any) func(*testing.T, *os.File, int64) { return samples.Bytes(pairs...) }

func raid(version uint32, place func(size int64) int64) func(*testing.T, *os.File, int64) {
	return samples.RAID(version, place)
}

func at(offset int64) func(int64) int64 { return func(int64) int64 { return offset } }

// Each sample is recognised, and a request to format it changes not one byte.
func TestSamplesAreNeverFormatted(t *testing.T) {
	for _, s := range samples.All() {
		t.Run(s.Name, func(t *testing.T) {
			f := image(t, s.Size())
			s.Make(t, f.Name())
			found := probe(t, f)
			if found.Type != s.Want {
				t.Fatalf("found %q, want %q", found.Type, s.Want)
			}
			before := sum(t, f)
			d := attach(t, f)
			fsType := "ext4"
			if isExt(s.Want) {
				fsType = "btrfs"
			}
			if d.SizeBytes < 109*mib {
				fsType = "ext4"
			}
			_, err := NewTools(1).Format(t.Context(), request(d, fsType))
			wantKind(t, err, backends.InUse)
			if err != nil && !strings.Contains(err.Error(), s.Want) {
				t.Errorf("the error does not name %q: %v", s.Want, err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if sum(t, f) != before {
				t.Error("the device was changed")
			}
		})
	}
}

func TestBlank(t *testing.T) {
	for _, size := range []int64{512, 4096, 100_000, mib, headArea, headArea + tailArea, headArea + tailArea + 1, 64 * mib,
		10 << 30} {
		if found := probe(t, image(t, size)); !found.Blank() {
			t.Errorf("a blank device of %d bytes holds %q", size, found.Type)
		}
	}
}
