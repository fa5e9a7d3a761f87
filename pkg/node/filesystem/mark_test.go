package filesystem

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// At least one copy of the mark is where mkfs writes nothing, whatever the size of the device: a copy that is there at
// the end was there all the time.
func TestMarkOutlivesFormatting(t *testing.T) {
	const tib = int64(1) << 40
	for fsType, sizes := range map[string][]int64{
		"ext4": {2 * mib, 3*mib + 512, 4864 << 10, 5 * mib, 5*mib + 4096, 6 * mib, 50 * mib, 51 * mib, 123*mib + 352256,
			300 * mib, 2 * tib, 9 * tib},
		"xfs":   {300 * mib, 301*mib + 512, 1 << 30, 2 * tib},
		"btrfs": {109 * mib, 130*mib + 512, 1 << 30, 2 * tib},
	} {
		t.Run(fsType, func(t *testing.T) {
			needTools(t, fsType)
			random := rand.New(rand.NewPCG(1, 2)) // Each type has its own, because the order of the types changes.
			for range 6 {
				sizes = append(sizes, classes.Least(fsType)+random.Int64N(2<<30))
			}
			for _, size := range sizes {
				d := attach(t, image(t, size))
				m := Mark{"v", fsType}
				m.on(t, d)
				maker, _ := makerOf(fsType)
				tool(t, append(append([]string{maker.tools[0]}, maker.args...), d.Path)...)
				if found := probe(t, d.File); found.Mark != m || found.Type != fsType {
					t.Errorf("on %d bytes mkfs left %s with mark %v", size, found, found.Mark)
				}
				if err := eraseMark(t.Context(), d.File, d.SizeBytes); err != nil {
					t.Error(err)
				}
				if found := probe(t, d.File); found.Mark != (Mark{}) || found.Type != fsType || found.Incomplete {
					t.Errorf("on %d bytes there is, after the mark was erased, %s", size, found)
				}
				_ = d.Close() // the device frees itself
			}
		})
	}
}

// Killed at any moment, mkfs leaves something that is formatted again because of its mark, and for no other reason.
func TestFormatGoesOnAfterKill(t *testing.T) {
	for _, fsType := range Types() {
		t.Run(fsType, func(t *testing.T) {
			needTools(t, fsType)
			cut := 0
			for pause := time.Duration(0); pause < 24*time.Millisecond; pause += 2 * time.Millisecond {
				d := attach(t, image(t, classes.Least(fsType)))
				Mark{"v", fsType}.on(t, d)
				if killed(t, fsType, d, pause) {
					cut++
				}
				before := probe(t, d.File)
				other := request(d, fsType)
				other.Volume = "u"
				// A device with only the mark on it may be used by any volume.
				if !before.Blank() {
					if _, err := NewTools(1).Format(t.Context(), other); !backends.Is(err, backends.InUse) {
						t.Errorf("killed after %s: it held %s, and formatting it for another volume ended with %v", pause, before, err)
					}
				}
				wantFormatted(t, d, fsType, before)
				_ = d.Close() // the device frees itself
			}
			t.Logf("cut short %d times of 12", cut)
		})
	}
}

// killed runs mkfs, kills it after the pause, and reports whether it was still running.
func killed(t *testing.T, fsType string, d *device.Device, pause time.Duration) bool {
	t.Helper()
	m, _ := makerOf(fsType)
	path, _ := lookTool(m.tools[0])
	cmd := exec.CommandContext(t.Context(), path, append(append([]string{}, m.args...), d.Path)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(pause, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	return cmd.Wait() != nil
}

// wantFormatted formats a device on which an earlier call was interrupted.
func wantFormatted(t *testing.T, d *device.Device, fsType string, before Found) {
	t.Helper()
	found, err := NewTools(1).Format(t.Context(), request(d, fsType))
	if err != nil || found != probe(t, d.File) || found.Type != fsType || found.Incomplete || found.Mark != (Mark{}) {
		t.Errorf("it held %s; going on ended with %v and left %s", before, err, found)
	}
}

// The context ends while a mark is being written. The call returns once that has ended: a page written later could hit
// the data of the device's next user. A call whose context has ended writes nothing.
func TestMarkIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		ctx, cancel := context.WithCancel(t.Context())
		written, done := make(chan error), make(chan error, 1)
		go func() {
			done <- noting(ctx, file, func() error {
				cancel()
				return <-written
			})
		}()
		synctest.Wait()
		if len(done) > 0 {
			t.Error("it returned while the mark was being written")
		}
		written <- io.ErrShortWrite
		if err := <-done; !errors.Is(err, io.ErrShortWrite) || !backends.Is(err, backends.Unavailable) {
			t.Errorf("it ended with %v, want Unavailable because of %v", err, io.ErrShortWrite)
		}
		err = noting(ctx, file, func() error {
			t.Error("a mark is written after the end of the context")
			return nil
		})
		wantKind(t, err, backends.Unavailable)
	})
}

// In a filesystem that was mounted, a page that looks like a mark belongs to a file: it is not believed, and is not
// changed.
func TestMarkInAFileIsData(t *testing.T) {
	for _, fsType := range Types() {
		t.Run(fsType, func(t *testing.T) {
			d := attach(t, image(t, classes.Least(fsType)))
			format(t, d, fsType)
			mountOnce(t, d, fsType)
			if fsType == "btrfs" { // What the kernel notes a moment after the mount is not noted if it ends before.
				if _, err := d.File.WriteAt(make([]byte, 8), 64<<10+uuidTreeGeneration); err != nil {
					t.Fatal(err)
				}
			}
			forged := Mark{"v", fsType}
			forged.on(t, d)
			if found := probe(t, d.File); found.Mark != (Mark{}) || found.Type != fsType {
				t.Errorf("found %s with mark %v", found, found.Mark)
			}
			_, err := NewTools(1).Format(t.Context(), request(d, fsType))
			wantKind(t, err, backends.InUse)
			for _, place := range markPlaces(d.SizeBytes) {
				page := make([]byte, markSize)
				if err := readFull(d.File, page, place); err != nil {
					t.Fatal(err)
				}
				if m, ok := readMark(page, place); !ok || m != forged {
					t.Errorf("the file's contents at %d were changed", place)
				}
			}
		})
	}
}

// A filesystem that was never mounted holds no data, and creating it may have failed: its mark is believed.
func TestMarkOfWhatIsUnused(t *testing.T) {
	for _, fsType := range Types() {
		t.Run(fsType, func(t *testing.T) {
			d := attach(t, image(t, classes.Least(fsType)))
			format(t, d, fsType)
			before := probe(t, d.File)
			Mark{"v", fsType}.on(t, d)
			wantFormatted(t, d, fsType, before)
			if after := probe(t, d.File); after.UUID == before.UUID {
				t.Errorf("an unused %s that bears the mark was not made again", fsType)
			}
		})
	}
}

// mkfs.xfs that fails in the middle can leave a filesystem that looks finished but is incomplete.
func TestMarkedXFSIsMadeAgain(t *testing.T) {
	d := attach(t, image(t, classes.Least("xfs")))
	format(t, d, "xfs")
	Mark{"v", "xfs"}.on(t, d)
	const groupHeaders = 4096
	if _, err := d.File.WriteAt(make([]byte, groupHeaders-512), 512); err != nil {
		t.Fatal(err)
	}
	before := probe(t, d.File)
	if before.Type != "xfs" || before.Incomplete || !before.Unused {
		t.Fatalf("found %+v, want an xfs that looks finished and unused", before)
	}
	wantFormatted(t, d, "xfs", before)
	mountOnce(t, d, "xfs")
	if after := probe(t, d.File); after.Unused || after.UUID == before.UUID {
		t.Errorf("found %+v, want another xfs, which was mounted", after)
	}
}

// An xfs that was mounted counts as used from the first instant, even if it was never unmounted.
func TestUnusedXFS(t *testing.T) {
	f := image(t, classes.Least("xfs"))
	d := attach(t, f)
	format(t, d, "xfs")
	if found := probe(t, d.File); !found.Unused {
		t.Error("a new xfs counts as used")
	}
	mounted(t, d, "xfs")
	// The image, because the kernel's own writes bypass the pages of the device that were read before.
	if found := probe(t, f); found.Unused {
		t.Error("an xfs that is mounted counts as unused")
	}
}

// A device that was being formatted as one type is not formatted as another.
func TestMarkOfAnotherType(t *testing.T) {
	d := attach(t, image(t, classes.Least("xfs")))
	format(t, d, "xfs")
	Mark{"v", "xfs"}.on(t, d)
	_, err := NewTools(1).Format(t.Context(), request(d, "ext4"))
	wantKind(t, err, backends.InUse)
	if err != nil && (!strings.Contains(err.Error(), "xfs") || !strings.Contains(err.Error(), "ext4")) {
		t.Errorf("the error does not name both types: %v", err)
	}
}

// A device that holds only a mark is blank: it may be formatted in another way, and for another volume.
func TestBlankButForMark(t *testing.T) {
	needTools(t, "xfs")
	for name, mark := range map[string]func(*testing.T, *device.Device){
		"a mkfs that failed": func(t *testing.T, d *device.Device) {
			t.Helper()
			_, err := NewTools(1).Format(t.Context(), laidOut(d, "ext4", classes.Geometry{Inodes: 1 << 31}))
			wantKind(t, err, backends.Unknown)
		},
		"a call that was killed before its mkfs": func(t *testing.T, d *device.Device) {
			t.Helper()
			Mark{"v", "ext4"}.on(t, d)
		},
		"another volume's": func(t *testing.T, d *device.Device) {
			t.Helper()
			Mark{"u", "xfs"}.on(t, d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := attach(t, image(t, classes.Least("xfs")))
			mark(t, d)
			format(t, d, "xfs")
			if found := probe(t, d.File); found.Type != "xfs" || found.Mark != (Mark{}) {
				t.Errorf("the device holds %s, with mark %v", found, found.Mark)
			}
		})
	}
}

// Only a complete mark at its own place counts; anything similar is data.
func TestFalseMarks(t *testing.T) {
	page := func(place int64) []byte {
		page, err := Mark{"v", "ext4"}.page(place)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	const size = 64 * mib
	places := markPlaces(size)
	for name, fake := range map[string]func() (text []byte, place int64){
		"elsewhere":      func() ([]byte, int64) { return page(places[0]), places[0] - markSize },
		"another's page": func() ([]byte, int64) { return page(places[1]), places[0] },
		"torn":           func() ([]byte, int64) { return page(places[0])[:512], places[0] },
		"changed": func() ([]byte, int64) {
			p := page(places[0])
			p[len(markMagic)+12] ^= 1
			return p, places[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := image(t, size)
			text, place := fake()
			put(t, f, place, string(text))
			d := attach(t, f)
			before := sum(t, f)
			if found := probe(t, d.File); found.Type != UnknownData || found.Mark != (Mark{}) {
				t.Errorf("found %s with mark %v, want data that nobody knows", found, found.Mark)
			}
			_, err := NewTools(1).Format(t.Context(), request(d, "ext4"))
			wantKind(t, err, backends.InUse)
			if sum(t, f) != before {
				t.Error("the device was changed")
			}
		})
	}
}
