package loops_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/loops"
	"github.com/stowage-csi/stowage/tests/stall"
	"github.com/stowage-csi/stowage/tests/testfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newImage(t *testing.T, elements ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: loop devices need root")
	}
	path := filepath.Join(elements...)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, os.Truncate(path, 1<<20))
	return path
}

// slack is how long a busy machine may take: a wait for a stopped server never ends.
const slack = 2 * time.Minute

// holding is Holding with a deadline, and checks that it is kept.
func holding(t *testing.T, calls *deadline.Calls, path string, limit time.Duration) ([]loops.Device, error) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	must(t, err)
	defer func() { _ = unix.Close(fd) }()
	ctx, cancel := context.WithTimeout(calls.With(t.Context()), limit)
	defer cancel()
	begun := time.Now()
	found, err := loops.Holding(ctx, fd, path)
	if took := time.Since(begun); took > limit+slack {
		t.Errorf("it took %s of %s", took, limit)
	}
	return found, err
}

func wantOne(t *testing.T, found []loops.Device, err error, device string) {
	t.Helper()
	if err != nil || len(found) != 1 || found[0].Path != device {
		t.Errorf("found %v (%v), want %s", found, err, device)
	}
}

func TestHolding(t *testing.T) {
	var calls deadline.Calls
	dir := t.TempDir()
	image, link := newImage(t, dir, "a", "volume"), filepath.Join(dir, "b", "other")
	stall.Apart(t)
	testfs.Attach(t, newImage(t, dir, "c", "a", "volume")) // of the same name
	if found, err := holding(t, &calls, image, slack); err != nil || len(found) != 0 {
		t.Errorf("what is not attached is held by %v (%v)", found, err)
	}
	must(t, os.Mkdir(filepath.Dir(link), 0o700))
	must(t, os.Link(image, link))
	byLink := testfs.Attach(t, link)
	found, err := holding(t, &calls, image, slack)
	wantOne(t, found, err, byLink)
	must(t, os.Remove(link)) // its name ends in " (deleted)" now
	found, err = holding(t, &calls, image, slack)
	wantOne(t, found, err, byLink)
	byName := testfs.Attach(t, image)
	found, err = holding(t, &calls, image, slack)
	wantOne(t, found, err, byName)
	now, err := loops.Sequence(byName)
	must(t, err)
	other, err := loops.Sequence(byLink)
	must(t, err)
	if found[0].Sequence != now || now == other {
		t.Errorf("%s was found with the sequence number %d and has %d; %s has %d", byName, found[0].Sequence, now, byLink,
			other)
	}
	if none, err := loops.Sequence("/dev/loop-none"); none != 0 || err != nil {
		t.Errorf("a device that is not there has the sequence number %d, %v", none, err)
	}
}

// Another user's device on a server that does not answer delays no caller for long, and hides nothing.
func TestStrangerHangs(t *testing.T) {
	var calls deadline.Calls
	server := stall.Serve(t)
	for _, name := range []string{"one", "two", "three"} {
		newImage(t, server.Real, name)
		testfs.Attach(t, filepath.Join(server.Dir, name))
	}
	dir := t.TempDir()
	image, link := newImage(t, dir, "a", "volume"), filepath.Join(dir, "a", "link")
	server.Stop(t)
	t.Cleanup(func() { server.Continue(t) }) // otherwise nothing could be detached
	begun := time.Now()
	if found, err := holding(t, &calls, image, 10*time.Minute); err != nil || len(found) != 0 {
		t.Errorf("what is not attached is held by %v (%v)", found, err)
	}
	if took := time.Since(begun); took > slack {
		t.Errorf("it took %s", took)
	}
	given := calls.GivenUp() // also those about other programs' devices, where a busy machine answers late
	if given < 3 {
		t.Errorf("%d questions were given up, want 3 at least", given)
	}
	must(t, os.Link(image, link))
	device := testfs.Attach(t, link)
	begun = time.Now()
	found, err := holding(t, &calls, image, 10*time.Minute)
	wantOne(t, found, err, device)
	if took := time.Since(begun); took > slack || calls.GivenUp() >= given+3 {
		t.Errorf("what has not answered is asked again: it took %s, and %d calls hang", took, calls.GivenUp())
	}
	server.Continue(t)
	for calls.GivenUp() != 0 {
		<-time.After(time.Millisecond)
	}
}

// A device that may hold the image, and does not answer, is never skipped.
func TestOwnHangs(t *testing.T) {
	var calls deadline.Calls
	server, dir := stall.Serve(t), t.TempDir()
	newImage(t, server.Real, "image")
	must(t, os.Link(filepath.Join(server.Real, "image"), filepath.Join(server.Real, "link")))
	device := testfs.Attach(t, filepath.Join(server.Dir, "link"))
	image, elsewhere := filepath.Join(server.Dir, "image"), filepath.Join(dir, "elsewhere")
	// The path by which it is known is on another filesystem, as far as this mount namespace can tell.
	must(t, os.WriteFile(elsewhere, nil, 0o600))
	must(t, unix.Mount(image, elsewhere, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(elsewhere, unix.MNT_DETACH)) })
	for _, path := range []string{image, elsewhere} {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		must(t, err)
		server.Stop(t)
		// Stimulus: the server answers nothing until it continues.
		ctx, cancel := context.WithTimeout(calls.With(t.Context()), time.Second)
		var found []loops.Device
		err = deadline.Run(ctx, deadline.Call{Name: "finding " + path}, func(ctx context.Context) (err error) {
			found, err = loops.Holding(ctx, fd, path)
			return err
		})
		cancel()
		if !failure.Is(err, failure.Unavailable) {
			t.Errorf("%s on a server that does not answer: %v (%v), want Unavailable", path, found, err)
		}
		server.Continue(t)
		for calls.GivenUp() != 0 {
			<-time.After(time.Millisecond)
		}
		must(t, unix.Close(fd))
		found, err = holding(t, &calls, path, slack)
		wantOne(t, found, err, device)
	}
}

// After a server is gone for good, its device reports that, and does not count as holding the image.
func TestStrangerGone(t *testing.T) {
	var calls deadline.Calls
	dir := t.TempDir()
	image := newImage(t, dir, "a", "volume")
	server := stall.Serve(t)
	newImage(t, server.Real, "image")
	device := testfs.Attach(t, filepath.Join(server.Dir, "image"))
	must(t, server.Kill())
	must(t, unix.Unmount(server.Dir, unix.MNT_DETACH)) // its path is "/image" now, as if it were on our own filesystem
	all, err := loops.Attached()
	must(t, err)
	for _, d := range all {
		if d.Path == device && d.File != "/image" {
			t.Errorf("%s holds %q", d.Path, d.File)
		}
	}
	if found, err := holding(t, &calls, image, slack); err != nil || len(found) != 0 {
		t.Errorf("what is not attached is held by %v (%v)", found, err)
	}
	must(t, unix.Mount("none", server.Dir, "tmpfs", 0, "")) // for the server's own cleaning up
}
