package trim

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

const (
	mib = 1 << 20
	day = 24 * time.Hour
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// mounted creates an ext4 of a size on a device of another size, and mounts it.
func mounted(t *testing.T, deviceSize, size string) (fs Filesystem, image string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, for mounting")
	}
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		t.Skip("SKIPPED: mkfs.ext4 is not installed")
	}
	image = filepath.Join(t.TempDir(), "volume.img")
	must(t, exec.CommandContext(t.Context(), "truncate", "-s", deviceSize, image).Run())
	must(t, exec.CommandContext(t.Context(), mkfs, "-q", "-F", image, size).Run())
	d, err := device.Open(t.Context(), backends.Device{Path: image, Image: true}, device.Options{})
	must(t, err)
	defer d.Close()
	dir := t.TempDir()
	// The kernel would write the inode tables in the background, at a random time, and the image would grow.
	must(t, unix.Mount(d.Path, dir, "ext4", 0, "noinit_itable"))
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) }) // fails while anything is open there
	return at(t, dir, d.Major, d.Minor), image
}

// at describes the filesystem at a path.
func at(t *testing.T, path string, major, minor uint32) Filesystem {
	t.Helper()
	var stat unix.Stat_t
	must(t, unix.Stat(path, &stat))
	return Filesystem{Path: path, Type: "ext4", Dev: stat.Dev, Ino: stat.Ino, Major: major, Minor: minor}
}

func blocks(t *testing.T, path string) int64 {
	t.Helper()
	var stat unix.Stat_t
	must(t, unix.Stat(path, &stat))
	return stat.Blocks
}

// All ranges are trimmed, including the last, and a filesystem that is smaller than its device is trimmed to its end.
func TestMounted(t *testing.T) {
	for name, size := range map[string]string{"whole device": "", "smaller": "1600M", "smaller than a range": "600M"} {
		t.Run(name, func(t *testing.T) {
			args := size
			if args == "" {
				args = "3G"
			}
			fs, image := mounted(t, "3G", args)
			file := filepath.Join(fs.Path, "file")
			must(t, exec.CommandContext(t.Context(), "fallocate", "-l", "500M", file).Run())
			must(t, os.Remove(file))
			unix.Sync()
			before := blocks(t, image)
			trimmed, err := Mounted(t.Context(), fs, func() {})
			must(t, err)
			if trimmed < 500*mib || blocks(t, image) > before {
				t.Errorf("%d bytes were trimmed, and the image takes %d blocks, before %d", trimmed, blocks(t, image), before)
			}
		})
	}
}

func TestMountedRefuses(t *testing.T) {
	fs, _ := mounted(t, "64M", "64M")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other := t.TempDir()
	elsewhere, gone, noDevice := fs, fs, fs
	elsewhere.Path, gone.Path, noDevice.Major = other, filepath.Join(other, "none"), 4000
	for name, test := range map[string]struct {
		ctx  context.Context
		fs   Filesystem
		want backends.Kind
	}{
		"context is over":    {ctx, fs, backends.Unavailable},
		"another filesystem": {t.Context(), elsewhere, backends.NotFound},
		"path is gone":       {t.Context(), gone, backends.NotFound},
		"device is gone":     {t.Context(), noDevice, backends.Unavailable},
		"cannot be trimmed":  {t.Context(), at(t, "/dev/shm", fs.Major, fs.Minor), backends.Unsupported},
	} {
		if trimmed, err := Mounted(test.ctx, test.fs, func() {}); !backends.Is(err, test.want) || trimmed != 0 {
			t.Errorf("%s: %d, %v (%s), want %s", name, trimmed, err, backends.KindOf(err), test.want)
		}
	}
}

// schedule returns a schedule with a log.
func schedule(t *testing.T) (*Schedule, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return NewSchedule(filepath.Join(t.TempDir(), "marks"), slog.New(slog.NewTextHandler(&log, nil)), nil), &log
}

// A volume that cannot be trimmed is reported once.
func TestUnsupportedIsSaidOnce(t *testing.T) {
	fs, _ := mounted(t, "64M", "64M")
	s, log := schedule(t)
	now := time.Now()
	v := Volume{"v", at(t, "/dev/shm", fs.Major, fs.Minor), day}
	s.Set(v, now)
	for range 5 {
		now = now.Add(2 * day)
		s.Set(v, now)
		s.Due(t.Context(), now)
	}
	if said := strings.Count(log.String(), "cannot be trimmed"); said != 1 {
		t.Errorf("it was said %d times: %s", said, log)
	}
}

// A failure is retried before the interval has passed, and not at each tick.
func TestFailureIsTriedAgain(t *testing.T) {
	s, log := schedule(t)
	now := time.Now()
	s.Set(Volume{"v", Filesystem{Path: "/none", Major: 4000}, 7 * day}, now)
	now = now.Add(7 * day)
	for range 3 * 60 {
		s.Due(t.Context(), now)
		now = now.Add(time.Minute)
	}
	if failed := strings.Count(log.String(), "trimming failed"); failed != 3 {
		t.Errorf("it failed %d times in three hours, want once an hour: %s", failed, log)
	}
}

// A pause cancels the trim and waits for its end, keeps the volume from being trimmed, and leaves it due.
func TestPause(t *testing.T) {
	s, _ := schedule(t)
	now := time.Now().Add(2 * day)
	s.Set(Volume{"v", Filesystem{Path: "/none", Major: 4000}, day}, time.Now())
	running := s.begin(t.Context(), now)
	if running == nil || running.Name != "v" || running.ctx.Err() != nil {
		t.Fatalf("the volume is not due: %v", running)
	}
	if resume, err := s.Pause(t.Context(), "other"); err != nil {
		t.Errorf("another volume waits too: %v", err)
	} else {
		resume()
	}
	// Stimulus: the trimming goes on until it is ended.
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Pause(short, "v"); !backends.Is(err, backends.Unavailable) {
		t.Errorf("a pause that cannot wait any longer: %v", err)
	}
	if running.ctx.Err() == nil {
		t.Error("the trimming was not told to stop")
	}
	resumes := make(chan func())
	go func() {
		resume, _ := s.Pause(t.Context(), "v")
		resumes <- resume
	}()
	select {
	case <-resumes:
		t.Error("the pause did not wait for the end of the trimming")
	// Stimulus: the trimming goes on until it is ended.
	case <-time.After(10 * time.Millisecond):
	}
	s.ended(running, now, 0, context.Canceled)
	resume := <-resumes
	if s.begin(t.Context(), now) != nil {
		t.Error("a volume is trimmed that is paused")
	}
	resume()
	resume()
	if s.begin(t.Context(), now) == nil {
		t.Error("a volume is not due any more whose trimming was interrupted")
	}
	if len(s.paused) != 0 {
		t.Errorf("paused still: %v", s.paused)
	}
}

// Volumes that arrive together are due at different times, each within its interval, and stay so after a restart.
func TestSpread(t *testing.T) {
	s, _ := schedule(t)
	now := time.Now()
	times := map[int64]bool{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		s.Set(Volume{Name: name, Interval: day}, now)
		due := s.volumes[name].due
		if due.Before(now) || due.After(now.Add(day)) {
			t.Errorf("%s is due %v from now", name, due.Sub(now))
		}
		times[due.Unix()/60] = true
		again := NewSchedule(s.marks.dir, s.log, nil)
		again.Set(Volume{Name: name, Interval: day}, now.Add(time.Hour))
		if later := again.volumes[name].due; later.Sub(due).Abs() > time.Second {
			t.Errorf("%s is due at %v, and after a restart at %v", name, due, later)
		}
	}
	if len(times) < 5 {
		t.Errorf("six volumes are due at %d times", len(times))
	}
	s.Prune(now.Add(kept - day))
	if left, _ := os.ReadDir(s.marks.dir); len(left) != 6 {
		t.Errorf("%d marks are left, want all", len(left))
	}
	s.Prune(now.Add(kept + 2*day))
	if left, _ := os.ReadDir(s.marks.dir); len(left) != 0 {
		t.Errorf("%d old marks are left", len(left))
	}
}
