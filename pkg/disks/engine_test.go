package disks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/dirlock"
	"github.com/stowage-csi/stowage/pkg/disks"
	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/stall"
	"github.com/stowage-csi/stowage/tests/testfs"
)

func TestMain(m *testing.M) {
	stall.Main()
	os.Exit(mountns.IsolateInMemory(m.Run))
}

const (
	mib    = 1 << 20
	canary = "the canary of an earlier tenant"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func image(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk.img")
	must(t, errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)))
	return path
}

// bench is a node whose engine can be restarted.
type bench struct {
	config, state string
	links, path   string // links is in memory, and path leads there
}

func newBench(t *testing.T, config string) *bench {
	t.Helper()
	testfs.NeedRoot(t)
	run := t.TempDir()
	must(t, unix.Mount("run", run, "tmpfs", 0, ""))
	t.Cleanup(func() { must(t, unix.Unmount(run, 0)) })
	return &bench{config, t.TempDir(), filepath.Join(run, "links"), filepath.Join(t.TempDir(), "links")}
}

// options returns the options of its engine.
func (b *bench) options(t *testing.T) disks.Options {
	t.Helper()
	config, err := discovery.Parse([]byte(b.config))
	must(t, err)
	return disks.Options{
		Config: config, StateDir: b.state, LinkDir: b.links, LinkPath: b.path, Rescan: time.Minute,
		FirstPause: 50 * time.Millisecond, LastPause: time.Second, Log: slog.New(slog.DiscardHandler),
	}
}

// start starts an engine. It ends with stop, or with the test.
func (b *bench) start(t *testing.T) (e *disks.Engine, stop func()) {
	t.Helper()
	e, err := disks.Open(b.options(t))
	must(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the engine ended with %v", err)
		}
	}
	t.Cleanup(stop)
	return e, stop
}

// await waits for a state that satisfies the condition is.
func await(t *testing.T, e *disks.Engine, what string, is func(report.State) bool) report.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for after := ""; ; {
		s := e.State(ctx, after)
		if is(s) {
			return s
		}
		if ctx.Err() != nil {
			t.Fatalf("%s: it is never so; at last %+v", what, s)
		}
		after = s.Revision
	}
}

// in reports whether the only volume is in a state.
func in(state string) func(report.State) bool {
	return func(s report.State) bool { return len(s.Volumes) == 1 && s.Volumes[0].State == state }
}

// deletion reports whether the only deletion is in a state.
func deletion(state string) func(report.State) bool {
	return func(s report.State) bool { return len(s.Deletions) == 1 && s.Deletions[0].State == state }
}

func offer(volume, id string) []report.Offer { return []report.Offer{{ID: id, Volume: volume}} }

func remove(volume, id string, m method.Method) []report.Deletable {
	return []report.Deletable{{ID: id, Volume: volume, Method: m}}
}

// use writes canaries as a tenant does.
func use(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	for _, offset := range []int64{0, 17 * mib, 40 * mib} {
		_, err = f.WriteAt([]byte(canary), offset)
		must(t, err)
	}
	must(t, errors.Join(f.Sync(), f.Close()))
}

func canaries(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return bytes.Count(text, []byte(canary))
}

// TestCycle takes a device through its life, twice: found, offered, used, wiped, and found again.
func TestCycle(t *testing.T) {
	file := image(t, 64*mib)
	node := testfs.Attach(t, file)
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", node)).start(t)
	for cycle := range 2 {
		v := await(t, e, "found", in(report.Available)).Volumes[0]
		if to, err := os.Readlink(v.Path); err != nil || to != node {
			t.Fatalf("the link leads to %q (%v), want %s", to, err, node)
		}
		id, deletes := fmt.Sprintf("local-%d", cycle), remove(v.Name, fmt.Sprintf("d%d", cycle), method.Zero)
		must(t, e.Want(report.Wanted{Offers: offer(v.Name, id)}))
		await(t, e, "offered", in(report.Offered))
		use(t, v.Path)
		must(t, e.Want(report.Wanted{Offers: offer(v.Name, id), Deletions: deletes}))
		await(t, e, "wiped", deletion(report.Complete))
		if n := canaries(t, file); n > 0 {
			t.Errorf("%d canaries can be read", n)
		}
		if s := e.State(t.Context(), ""); !in(report.Offered)(s) {
			t.Errorf("it is offered still, and listed as %+v", s.Volumes)
		}
		must(t, e.Want(report.Wanted{}))
	}
}

// TestMountPointCycle does the same with a mount point.
func TestMountPointCycle(t *testing.T) {
	at := testfs.New(t, "ext4", 64)
	e, _ := newBench(t, fmt.Sprintf("mountPoints: [{paths: [%s]}]", at)).start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
	must(t, os.WriteFile(filepath.Join(at, "file"), []byte(canary), 0o600))
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a"), Deletions: remove(v.Name, "d", method.Zero)}))
	await(t, e, "emptied", deletion(report.Complete))
	must(t, e.Want(report.Wanted{}))
	await(t, e, "offered again", in(report.Available))
}

// TestCompleteNeverRunsAgain requests a complete deletion again, like an agent that reads an old spec, now and after a
// restart.
func TestCompleteNeverRunsAgain(t *testing.T) {
	file := image(t, 64*mib)
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", testfs.Attach(t, file)))
	e, stop := b.start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a"), Deletions: remove(v.Name, "d", method.Zero)}))
	await(t, e, "wiped", deletion(report.Complete))
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "b")}))
	await(t, e, "offered to another", in(report.Offered))
	use(t, v.Path)
	for range 2 {
		must(t, e.Want(report.Wanted{Offers: offer(v.Name, "b"), Deletions: remove(v.Name, "d", method.Zero)}))
		await(t, e, "complete", deletion(report.Complete))
		stop()
		if n := canaries(t, file); n != 3 {
			t.Fatalf("%d canaries can be read, want 3: the volume of another was wiped", n)
		}
		e, stop = b.start(t)
	}
	if err := e.Want(report.Wanted{Deletions: remove(v.Name, "d", method.Discard)}); err == nil ||
		!strings.Contains(err.Error(), "id of its own") {
		t.Errorf("an id with another meaning: %v", err)
	}
}

// TestDirty checks that a volume that was offered is not Available before it is wiped, even if the spec is lost and the
// node restarts.
func TestDirty(t *testing.T) {
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", testfs.Attach(t, image(t, 64*mib))))
	e, stop := b.start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
	stop()
	e, stop = b.start(t)
	await(t, e, "not told yet, it counts as offered", in(report.Offered))
	must(t, e.Want(report.Wanted{}))
	await(t, e, "dirty", in(report.Dirty))
	must(t, e.Want(report.Wanted{Deletions: remove(v.Name, "d", method.Zero)}))
	await(t, e, "wiped", deletion(report.Complete))
	stop()
	e, _ = b.start(t)
	must(t, e.Want(report.Wanted{}))
	await(t, e, "clean", in(report.Available))
}

// TestUndeleted withdraws a complete deletion while the volume stays offered, as when its PersistentVolume came late
// and was bound. Its user may write, so it is dirty when the offer is lost.
func TestUndeleted(t *testing.T) {
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s], notBlank: true}]", testfs.Attach(t, image(t, 64*mib))))
	e, stop := b.start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	offered := report.Wanted{Offers: offer(v.Name, "a")}
	must(t, e.Want(offered))
	await(t, e, "acknowledged", in(report.Offered))
	must(t, e.Want(report.Wanted{Offers: offered.Offers, Deletions: remove(v.Name, "d", method.Zero)}))
	await(t, e, "wiped", deletion(report.Complete))
	must(t, e.Want(offered))
	use(t, v.Path)
	stop()
	e, _ = b.start(t)
	must(t, e.Want(report.Wanted{}))
	never(t, e, report.Available, report.Dirty)
}

// TestInUse checks that a volume in use is not wiped, and is wiped under the same id once it is free.
func TestInUse(t *testing.T) {
	file := image(t, 64*mib)
	node := testfs.Attach(t, file)
	testfs.Format(t, "ext4", node)
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s], notBlank: true}]", node)).start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	t.Run("mounted", func(t *testing.T) {
		testfs.Mount(t, node)
		must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a"), Deletions: remove(v.Name, "d", method.Zero)}))
		s := await(t, e, "refused", deletion(report.Failed))
		if !strings.Contains(s.Deletions[0].Message, "in use") || !strings.Contains(s.Deletions[0].Message, node) {
			t.Errorf("it says %q", s.Deletions[0].Message)
		}
	})
	await(t, e, "wiped", deletion(report.Complete))
}

// TestFamily checks that a disk is not wiped while a partition of it is offered.
func TestFamily(t *testing.T) {
	file := image(t, 64*mib)
	node := testfs.Attach(t, file)
	part := testfs.Partition(t, node, 1, mib, 48*mib)
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s, %s], partitions: true}]", node, part)).start(t)
	s := await(t, e, "found", func(s report.State) bool { return named(s, part).State == report.Available })
	disk, partition := named(s, node), named(s, part)
	must(t, e.Want(report.Wanted{Offers: offer(partition.Name, "a")}))
	use(t, partition.Path)
	must(t, e.Want(report.Wanted{Offers: offer(partition.Name, "a"), Deletions: remove(disk.Name, "d", method.Zero)}))
	await(t, e, "refused", func(s report.State) bool {
		return deletion(report.Complete)(s) ||
			deletion(report.Failed)(s) && strings.Contains(s.Deletions[0].Message, partition.Name)
	})
	if n := canaries(t, file); n != 3 {
		t.Errorf("%d canaries can be read, want 3: the disk was wiped under a tenant of its partition", n)
	}
}

// TestPulled checks that a volume whose disk is gone has no link, is not mistaken for a disk that got its name, and is
// wiped when it is back on another path.
func TestPulled(t *testing.T) {
	file, other := image(t, 64*mib), image(t, 64*mib)
	place := filepath.Join("/dev", "stowage-test-"+strings.ReplaceAll(t.TempDir(), "/", "-"))
	b := newBench(t, fmt.Sprintf("devices: [{paths: ['%s*']}]", place))
	plug := func(t *testing.T, file, slot string) string {
		node := testfs.Attach(t, file)
		must(t, os.Symlink(node, place+slot))
		t.Cleanup(func() { must(t, os.Remove(place+slot)) })
		return node
	}
	e, _ := b.start(t)
	var v report.Volume
	t.Run("there", func(t *testing.T) {
		node := plug(t, file, "a")
		v = named(await(t, e, "found", func(s report.State) bool { return named(s, node).State == report.Available }), node)
		must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
		await(t, e, "acknowledged", func(s report.State) bool { return named(s, node).State == report.Offered })
		use(t, v.Path)
	})
	plug(t, other, "a")
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a"), Deletions: remove(v.Name, "d", method.Zero)}))
	await(t, e, "missing", deletion(report.Failed))
	await(t, e, "not listed", func(s report.State) bool {
		return !slices.ContainsFunc(s.Volumes, func(w report.Volume) bool { return w.Name == v.Name })
	})
	if _, err := os.Lstat(v.Path); err == nil {
		t.Error("the link is still there")
	}
	if canaries(t, file) != 3 {
		t.Error("a disk that is not there was wiped")
	}
	again := plug(t, file, "b")
	await(t, e, "wiped", deletion(report.Complete))
	await(t, e, "listed", func(s report.State) bool { return named(s, again).Name == v.Name })
	if to, err := os.Readlink(v.Path); err != nil || to != again {
		t.Errorf("the link leads to %q (%v), want %s", to, err, again)
	}
	if canaries(t, file) > 0 {
		t.Error("the canary can be read")
	}
}

func named(s report.State, node string) report.Volume {
	i := slices.IndexFunc(s.Volumes, func(v report.Volume) bool { return v.Device == node })
	if i < 0 {
		return report.Volume{}
	}
	return s.Volumes[i]
}

// TestWipeResumes stops the engine in the middle of wipes, repeatedly.
func TestWipeResumes(t *testing.T) {
	file := image(t, 1024*mib)
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", testfs.Attach(t, file)))
	e, stop := b.start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
	use(t, v.Path)
	wanted := report.Wanted{Offers: offer(v.Name, "a"), Deletions: remove(v.Name, "d", method.Shred)}
	last, lives := -1, 0
	for ; lives < 100; lives++ {
		must(t, e.Want(wanted))
		s := await(t, e, "progress", func(s report.State) bool {
			return s.Deletions[0].Progress > last || s.Deletions[0].State == report.Complete
		})
		if s.Deletions[0].State == report.Complete {
			break
		}
		last = s.Deletions[0].Progress
		stop()
		e, stop = b.start(t)
	}
	if lives < 3 || lives == 100 || canaries(t, file) > 0 {
		t.Errorf("after %d lives and %d percent %d canaries can be read", lives, last, canaries(t, file))
	}
}

// TestHungDisk checks that a disk that does not answer is not examined again until an earlier look has returned: each
// look keeps a thread.
func TestHungDisk(t *testing.T) {
	server := stall.Serve(t)
	path := filepath.Join(server.Real, "disk.img")
	must(t, errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 64*mib)))
	node := testfs.Attach(t, filepath.Join(server.Dir, "disk.img"))
	server.Stop(t)
	t.Cleanup(func() { server.Continue(t) }) // otherwise it could not be detached
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", node)).start(t)
	says := func(part string) func(report.State) bool {
		return func(s report.State) bool {
			return in(report.Unusable)(s) && strings.Contains(s.Volumes[0].Message, part)
		}
	}
	await(t, e, "given up", says("given up"))
	must(t, e.Want(report.Wanted{Deletions: remove("disk-of-another", "d", method.Zero)}))
	await(t, e, "perhaps what is to be wiped", func(s report.State) bool {
		return deletion(report.Failed)(s) && strings.Contains(s.Deletions[0].Message, node+" may be it")
	})
	must(t, e.Want(report.Wanted{Offers: offer("disk-of-another", "a")})) // It looks again.
	await(t, e, "not asked again", says("nothing more is begun"))
	server.Continue(t)
	await(t, e, "found", func(s report.State) bool {
		must(t, e.Want(report.Wanted{Offers: offer("disk-of-another", s.Revision)})) // It looks again.
		return in(report.Available)(s)
	})
}

// TestOneEngine checks that two engines cannot share a state directory, or a directory of links, and that others who
// lock the latter keep no engine out.
func TestOneEngine(t *testing.T) {
	b := newBench(t, "devices: [{paths: [/dev/none]}]")
	_, stop := b.start(t)
	if _, err := disks.Open(b.options(t)); err == nil {
		t.Error("a second engine opens the notes of the first")
	}
	o := b.options(t)
	o.StateDir = t.TempDir()
	if _, err := disks.Open(o); err == nil || !strings.Contains(err.Error(), b.links) {
		t.Errorf("a second engine keeps its links in the directory of the first: %v", err)
	}
	stop()
	others, err := dirlock.Lock(b.links) // Everybody may read it.
	must(t, err)
	e, err := disks.Open(o)
	must(t, err)
	must(t, errors.Join(e.Close(), others.Close()))
	info, err := os.Stat(filepath.Join(b.links, ".lock"))
	must(t, err)
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the mode of what is locked is %o, want 600", mode)
	}
}

// TestDamagedNote checks that an unreadable note prevents the start: its contents are not guessed.
func TestDamagedNote(t *testing.T) {
	b := newBench(t, "devices: [{paths: [/dev/none]}]")
	_, stop := b.start(t)
	stop()
	path := filepath.Join(b.state, "volumes", "disk-a.json")
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	if _, err := disks.Open(b.options(t)); err == nil ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("a damaged note: %v", err)
	}
}
