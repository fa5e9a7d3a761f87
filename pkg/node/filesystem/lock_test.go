package filesystem

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// hold takes a lock on a device with its own descriptor, until it is released.
func hold(t *testing.T, path string, how int) (release func()) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	// udev may inspect the device just now: its own lock is in the way for a moment.
	for end := time.Now().Add(enough); ; <-time.After(time.Millisecond) {
		err := unix.Flock(fd, how|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	return func() {
		if err := errors.Join(unix.Flock(fd, unix.LOCK_UN), unix.Close(fd)); err != nil {
			t.Error(err)
		}
	}
}

// udev takes a shared lock on each new device while it inspects it. Format waits for that, repeatedly.
func TestFormatWaitsForUdev(t *testing.T) {
	d := attach(t, image(t, 16*mib))
	for range 20 {
		release := hold(t, d.Path, unix.LOCK_SH)
		time.AfterFunc(5*time.Millisecond, release) // Stimulus: Format waits until then, however long that is.
		locked, err := lockDevice(t.Context(), d.Path)
		if err != nil {
			t.Fatal(err)
		}
		locked.unlock()
	}
	release := hold(t, d.Path, unix.LOCK_SH)
	time.AfterFunc(50*time.Millisecond, release) // Stimulus: as above.
	if _, err := NewTools(1).Format(t.Context(), request(d, "ext4")); err != nil {
		t.Error(err)
	}
}

// The lock tells a tool that writes, which has it exclusively, from a process that only inspects the device.
func TestLockTellsWhoHasIt(t *testing.T) {
	d := attach(t, image(t, 16*mib))
	for how, words := range map[int]string{unix.LOCK_SH: "shared lock, as udev",
		unix.LOCK_EX: "a tool that was started before"} {
		release := hold(t, d.Path, how)
		synctest.Test(t, func(t *testing.T) { // time passes only during waits
			const limit = 100 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			begun := time.Now()
			_, err := lockDevice(ctx, d.Path)
			took, want := time.Since(begun), time.Duration(0)
			wantKind(t, err, backends.Busy)
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%v does not say %q", err, words)
			}
			if how == unix.LOCK_SH {
				want = limit
			}
			if took != want {
				t.Errorf("it took %s with lock %d, want %s", took, how, want)
			}
		})
		release()
	}
}
