package filesystem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func intentBase(t *testing.T) string { return filepath.Join(t.TempDir(), "repairing") }

// A resize that is killed at any instant, together with the driver, leaves a filesystem that the next stage grows, with
// all its data.
func TestRecoverOfAKilledResize(t *testing.T) {
	const kills = 40
	f := image(t, 64*mib)
	d := attach(t, f)
	format(t, d, "ext4")
	data := bytes.Repeat([]byte("precious"), mib)
	dir := mounted(t, d, "ext4")
	if err := os.WriteFile(filepath.Join(dir, "big"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	base := intentBase(t)
	draw, cut := drawing(t), 0
	for i := range kills {
		size := int64(64+32*(i+1)) * mib
		enlarge(t, f, d, size)
		cut += killedResize(t, d.Path, d.File, base, time.Duration(draw.IntN(12000))*time.Microsecond)
		if err := NewTools(1).Recover(t.Context(), d.Path, base); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		wantNoIntent(t, base)
		if !NeedsGrow(probe(t, d.File), size) {
			continue // it had ended before the kill
		}
		if err := NewTools(1).GrowOffline(t.Context(), d.Path, "ext4", base); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		wantNoIntent(t, base)
	}
	t.Logf("%d of %d resizes were cut short", cut, kills)
	if cut == 0 {
		t.Error("no resize was cut short: the test proves nothing")
	}
	if got, err := os.ReadFile(filepath.Join(mounted(t, d, "ext4"), "big")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the data has changed: %d bytes, %v", len(got), err)
	}
}

// killedResize runs the resize as GrowOffline does and kills it after a while. It returns 1 if the resize was
// interrupted.
func killedResize(t *testing.T, path string, device *os.File, base string, after time.Duration) int {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "/sbin/e2fsck", "-f", "-p", path).CombinedOutput(); err != nil {
		t.Logf("e2fsck: %v: %s", err, out)
	}
	r, err := repairOf(base, device)
	if err == nil {
		err = r.record(repairGrow, device)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/sbin/resize2fs", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-time.After(after)    // the instant of the kill is the point
	_ = cmd.Process.Kill() // it may have ended
	if cmd.Wait() == nil {
		return 0
	}
	return 1
}

// The first intent creates the directory of the intents, and the end of the last one removes it.
func TestDirectoryOfIntents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repairing")
	device := &lockedDevice{File: image(t, mib)} // all zero, as its time of the last mount
	for range 2 {
		wantInterrupted(t, dir, map[string]bool{"one": false, "two": false})
		for _, name := range []string{"one", "two"} {
			if err := intentIn(t, dir, name, device).record(repairCheck, device.File); err != nil {
				t.Fatal(err)
			}
		}
		wantInterrupted(t, dir, map[string]bool{"one": true, "two": true})
		if err := intentIn(t, dir, "one", device).settle(device); err != nil {
			t.Error(err)
		}
		wantInterrupted(t, dir, map[string]bool{"one": false, "two": true})
		if err := intentIn(t, dir, "two", device).settle(device); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory without an intent: got %v, want %v", err, fs.ErrNotExist)
		}
	}
}

// The intents of volumes that never come back do not pile up: the newest stay.
func TestIntentsAreBounded(t *testing.T) {
	dir, recorded := t.TempDir(), time.Unix(1e9, 0)
	for i := range intentsKept + 1 {
		recorded = recorded.Add(time.Minute)
		path := filepath.Join(dir, fmt.Sprintf("%d-00000000", i))
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, recorded, recorded)); err != nil {
			t.Fatal(err)
		}
	}
	device := &lockedDevice{File: image(t, mib)}
	if err := intentIn(t, dir, "new", device).record(repairCheck, device.File); err != nil {
		t.Fatal(err)
	}
	wantInterrupted(t, dir, map[string]bool{"new": true, "0": false, "1": false, "2": true, fmt.Sprint(intentsKept): true})
}

// An intent that a stage uses is not among the oldest, even if the stage fails.
func TestRecoverRenewsTheIntent(t *testing.T) {
	d := attach(t, image(t, 64*mib))
	format(t, d, "ext4")
	base, old := intentBase(t), time.Unix(1e9, 0)
	r, err := repairOf(base, d.File)
	if err == nil {
		err = errors.Join(r.record(repairGrow, d.File), os.Chtimes(r.path, old, old))
	}
	if err != nil {
		t.Fatal(err)
	}
	tools := NewTools(1)
	others, err := tools.take(t.Context(), "/dev/other")
	if err != nil {
		t.Fatal(err)
	}
	defer others.release()
	work := func(ctx context.Context) error { return tools.Recover(ctx, d.Path, base) }
	wantKind(t, untilItWaits(t, tools, d.Path, work), backends.Unavailable)
	if info, err := os.Stat(r.path); err != nil || !info.ModTime().After(old) {
		t.Errorf("the intent is as old as before: %v", err)
	}
}

// Only a complete intent of the last mount tells that a tool left its work unfinished. A reader's look changes nothing.
func TestCutShort(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(r repair) error // the intent, after it was recorded
		want  bool
	}{
		"recorded":        {func(repair) error { return nil }, true},
		"settled":         {func(r repair) error { return os.Remove(r.path) }, false},
		"incomplete":      {func(r repair) error { return os.Truncate(r.path, 100) }, false},
		"of another time": {func(r repair) error { return os.Rename(r.path, r.base+"-12345678") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "repairing")
			device := &lockedDevice{File: image(t, mib)}
			r := intentIn(t, dir, "one", device)
			if err := errors.Join(r.record(repairGrow, device.File), test.spoil(r)); err != nil {
				t.Fatal(err)
			}
			before := sum(t, device.File)
			if got, err := CutShort(t.Context(), device.File, r.base); got != test.want || err != nil {
				t.Errorf("got %t, %v, want %t", got, err, test.want)
			}
			if sum(t, device.File) != before {
				t.Error("the device was changed")
			}
		})
	}
}

// Intents that are recorded and settled at the same time do not lose the directory.
func TestIntentsAtTheSameTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repairing")
	device := &lockedDevice{File: image(t, mib)}
	var all sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		r := intentIn(t, dir, name, device)
		all.Go(func() {
			for range 20 {
				if err := errors.Join(r.record(repairCheck, device.File), r.settle(device)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	all.Wait()
	wantInterrupted(t, dir, map[string]bool{"one": false, "two": false, "three": false})
}

// intentIn returns the intent of a name in a directory.
func intentIn(t *testing.T, dir, name string, device *lockedDevice) repair {
	t.Helper()
	r, err := repairOf(filepath.Join(dir, name), device.File)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantInterrupted(t *testing.T, dir string, want map[string]bool) {
	t.Helper()
	for name, interrupted := range want {
		if got, err := Interrupted(filepath.Join(dir, name)); got != interrupted || err != nil {
			t.Errorf("%s was interrupted: got %t, %v, want %t", name, got, err, interrupted)
		}
	}
}

func wantNoIntent(t *testing.T, base string) {
	t.Helper()
	if left, err := filepath.Glob(base + "*"); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// An intent of an earlier time says nothing about a filesystem that was mounted since: only a person may decide about
// its errors.
func TestStaleIntentToGrow(t *testing.T) {
	d := attach(t, image(t, 64*mib))
	format(t, d, "ext4")
	base := intentBase(t)
	r, err := repairOf(base, d.File)
	if err == nil {
		err = r.record(repairGrow, d.File)
	}
	if err != nil {
		t.Fatal(err)
	}
	mountOnce(t, d, "ext4")
	before := sum(t, d.File)
	if err := NewTools(1).Recover(t.Context(), d.Path, base); err != nil {
		t.Error(err)
	}
	if sum(t, d.File) != before {
		t.Error("the device was changed")
	}
	wantNoIntent(t, base)
}

// A torn superblock is restored, and nothing else is changed.
func TestRecoverOfATornSuperblock(t *testing.T) {
	d := attach(t, image(t, 64*mib))
	format(t, d, "ext4")
	mountOnce(t, d, "ext4")
	base := intentBase(t)
	r, err := repairOf(base, d.File)
	if err == nil {
		err = r.record(repairCheck, d.File)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := sum(t, d.File)
	put(t, d.File, extOffset+0x30, "half") // s_wtime
	if sb, err := superblockOf(d.File); err != nil || !torn(sb) {
		t.Fatalf("the superblock is whole, %v: the test is wrong", err)
	}
	if err := NewTools(1).Recover(t.Context(), d.Path, base); err != nil {
		t.Error(err)
	}
	if sum(t, d.File) != before {
		t.Error("the device is not what it was")
	}
	wantNoIntent(t, base)
}

// An e2fsck whose writes failed may have written only that all is well. It is run again, unless all was well before.
func TestRecoverOfACheckThatWasNotWritten(t *testing.T) {
	for state, repaired := range map[string]bool{"2": true, "1": false} { // errors were found; all is well
		d := attach(t, image(t, 64*mib))
		format(t, d, "ext4")
		mountOnce(t, d, "ext4")
		base := intentBase(t)
		debug := func(request string) {
			if !tool(t, "debugfs", "-w", "-R", request, d.Path) {
				t.Skip("SKIPPED: debugfs is not installed")
			}
		}
		debug("set_super_value state " + state)
		r, err := repairOf(base, d.File)
		if err == nil {
			err = r.record(repairCheck, d.File)
		}
		if err != nil {
			t.Fatal(err)
		}
		debug("setb 9000") // not used by any file
		debug("set_super_value state 1")
		if !clean(d.File) || sound(t, d.Path) {
			t.Fatal("there is nothing to repair, or it is seen: the test is wrong")
		}
		if err := NewTools(1).Recover(t.Context(), d.Path, base); err != nil {
			t.Error(err)
		}
		if sound(t, d.Path) != repaired {
			t.Errorf("state %s: that it was repaired is %t", state, !repaired)
		}
		wantNoIntent(t, base)
	}
}

// sound reports whether a forced e2fsck finds no errors, whatever the superblock says.
func sound(t *testing.T, path string) bool {
	t.Helper()
	err := exec.CommandContext(t.Context(), "/sbin/e2fsck", "-f", "-n", path).Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return err == nil
}
