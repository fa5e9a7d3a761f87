package filesystem

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// The time to prove that a sparse image, and a disk, of 1 TiB are blank, with none of it in memory.
func BenchmarkBlankTebibyte(b *testing.B) {
	for _, form := range []string{"image", "disk"} {
		b.Run(form, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "volume.img")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				b.Fatal(err)
			}
			if err := os.Truncate(path, 1<<40); err != nil {
				b.Fatal(err)
			}
			d, err := device.Open(b.Context(), backends.Device{Path: path, Image: true}, device.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = d.Close() }() // the device frees itself
			if form == "disk" {
				if err := os.Remove(path); err != nil { // so that the file cannot be asked
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if err := unix.IoctlSetInt(int(d.File.Fd()), unix.BLKFLSBUF, 0); err != nil {
					b.Fatal(err)
				}
				Announce(d.File, d.SizeBytes)
				if found, err := Probe(b.Context(), d.File, d.SizeBytes); err != nil || !found.Blank() {
					b.Fatal(found, err)
				}
			}
		})
	}
}
