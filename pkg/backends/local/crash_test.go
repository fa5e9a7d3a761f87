package local

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local/freeze"
	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/stall"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestMain runs the tests, or, when arguments follow the flags, the child that a crash test kills.
func TestMain(m *testing.M) {
	stall.Main()
	flag.Parse()
	switch flag.Arg(0) {
	case "load":
		childUnderLoad(flag.Arg(1), os.Stdout)
	case "freeze":
		childThatFreezes(flag.Arg(1), flag.Arg(2), os.Stdout)
	default:
		os.Exit(mountns.IsolateInMemory(m.Run))
	}
}

// child starts this test binary again, as one of the children above.
func child(t *testing.T, args ...string) (kill func(), lines <-chan string) {
	t.Helper()
	binary, err := os.Executable()
	must(t, err)
	command := exec.CommandContext(context.Background(), binary, append([]string{"-test.run=^$", "--"}, args...)...)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	said := make(chan string, 1<<16)
	go func() {
		defer close(said)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			said <- scanner.Text()
		}
	}()
	kill = func() { _ = command.Process.Kill() } // SIGKILL; its output shows whether it has ended by itself.
	t.Cleanup(func() {
		kill()
		_ = command.Wait() // It was killed.
	})
	return kill, said
}

func openChild(dataDir string) *grouping {
	instance, err := open(context.Background(), backends.Options{Driver: testDriver, NodeID: "node-1", DataDir: dataDir,
		Config: patient(bothPools()...)})
	if err != nil {
		panic(err)
	}
	return instance.Controller.(*grouping)
}

// childUnderLoad creates, grows, copies and deletes volumes until it is killed, and prints what is acknowledged.
func childUnderLoad(dataDir string, out io.Writer) {
	e := openChild(dataDir)
	say := func(format string, args ...any) {
		if _, err := out.Write(fmt.Appendf(nil, format+"\n", args...)); err != nil { // One write, so one line.
			panic(err)
		}
	}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				pool := []string{"directory", "image"}[(worker+n)%2]
				lifecycle(e, pool, fmt.Sprintf("%s-%d-%d-%d", pool, os.Getpid(), worker, n), n%3 == 0, say)
			}
		})
	}
	wg.Wait()
}

// lifecycle prints "made", "grown" and "gone" after each step, and "deleting" before it.
func lifecycle(e *grouping, pool, name string, keep bool, say func(string, ...any)) {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	v, err := e.Create(ctx, specIn(pool, name))
	check(err)
	say("made volume %s %d", name, v.CapacityBytes)
	_, err = e.CreateSnapshot(ctx, backends.SnapshotSpec{Name: name, Volume: v.Handle})
	check(err)
	say("made snapshot %s 0", name)
	if pool == "image" {
		_, err = e.CreateGroup(ctx, backends.GroupSpec{Name: name, Volumes: []string{v.Handle}})
		check(err)
		say("made group %s 0", name)
	}
	grown, err := e.Expand(ctx, v.Handle, backends.CapacityRange{RequiredBytes: 2 * v.CapacityBytes})
	check(err)
	say("grown volume %s %d", name, grown.CapacityBytes)
	_, err = e.Source(ctx, backends.Attachment{Handle: v.Handle})
	check(err)
	check(e.Release(ctx, v.Handle))
	if keep {
		return
	}
	say("deleting volume %s 0", name)
	check(e.Delete(ctx, v.Handle))
	say("gone volume %s 0", name)
	say("deleting snapshot %s 0", name)
	check(e.DeleteSnapshot(ctx, handleOf(snapshotPrefix, name)))
	say("gone snapshot %s 0", name)
	if pool == "image" {
		say("deleting group %s 0", name)
		check(e.DeleteGroup(ctx, handleOf(groupPrefix, name)))
		say("gone group %s 0", name)
	}
}

// known is what the children have acknowledged about one item.
type known struct {
	state string
	size  int64
}

// leastSaid is the minimum number of lines that a child prints before it is killed.
const leastSaid = 40

// seed decides after how many lines each child is killed.
var seed = flag.Uint64("seed", 1, "the seed of what is random") //nolint:gochecknoglobals // A flag of a test binary can be registered here only.

// TestKilledUnderLoad kills a process during its work, repeatedly over the same data. It checks that everything
// acknowledged exists, that every item is complete, and that nothing else is left.
func TestKilledUnderLoad(t *testing.T) {
	f := newFixture(t)
	f.options.Config = patient(bothPools()...) // as the child has it
	acknowledged := map[string]known{}
	rng := rand.New(rand.NewPCG(*seed, 1))
	for round := range 12 {
		f.shut()
		kill, lines := child(t, "load", f.dataDir)
		for range leastSaid + rng.IntN(2*leastSaid) {
			read(t, lines, acknowledged, true)
		}
		kill()
		read(t, lines, acknowledged, false)
		f.open()
		f.agrees(t, round, acknowledged)
	}
	t.Logf("%d things were acknowledged with -seed %d", len(acknowledged), *seed)
	if len(acknowledged) < 100 {
		t.Errorf("only %d things were made: next to nothing was tested", len(acknowledged))
	}
}

// read reads the output of a child: one line, or everything until its end.
func read(t *testing.T, lines <-chan string, into map[string]known, one bool) {
	t.Helper()
	for line := range lines {
		fields := strings.Fields(line)
		if len(fields) != 4 {
			continue // Cut off by the kill.
		}
		size, err := strconv.ParseInt(fields[3], 10, 64)
		must(t, err)
		into[fields[1]+" "+fields[2]] = known{fields[0], size}
		if one {
			return
		}
	}
	if one {
		t.Fatal("the child ended by itself")
	}
}

func (f *fixture) agrees(t *testing.T, round int, acknowledged map[string]known) {
	t.Helper()
	ctx := t.Context()
	for what, k := range acknowledged {
		kind, name, _ := strings.Cut(what, " ")
		var err error
		size := k.size
		switch kind {
		case "volume":
			var v *backends.Volume
			if v, err = f.Find(ctx, backends.Spec{Name: name}); err == nil {
				size = v.CapacityBytes
			}
		case "snapshot":
			_, err = f.FindSnapshot(ctx, backends.SnapshotSpec{Name: name})
		case "group":
			_, err = f.FindGroup(ctx, name)
		}
		switch {
		case k.state == "gone" && !backends.Is(err, backends.NotFound):
			t.Errorf("VIOLATION: round %d: %s was deleted and is there: %v", round, what, err)
		case (k.state == "made" || k.state == "grown") && err != nil:
			t.Errorf("VIOLATION: round %d: %s was %s and is not there: %v", round, what, k.state, err)
		case k.state == "made" && size < k.size, k.state == "grown" && size != k.size:
			t.Errorf("VIOLATION: round %d: %s has %d bytes, and had %d", round, what, size, k.size)
		}
	}
	unwell, _, err := f.ListHealth(ctx, backends.Page{})
	if err != nil || len(unwell) > 0 {
		t.Errorf("VIOLATION: round %d: not well are %+v, %v", round, unwell, err)
	}
	f.everythingIsKnown(t)
}

// everythingIsKnown checks that the disk has exactly the items of the index, and that the ledgers have their sum.
func (f *fixture) everythingIsKnown(t *testing.T) {
	t.Helper()
	var want []string
	var sum int64
	for _, v := range f.stock.volumes.all() {
		want = append(want, volumesFolder+"/"+v.handle)
		r := v.item.record.Load()
		sum += r.SizeBytes
		if r.ExpandingFromBytes != 0 {
			t.Errorf("VIOLATION: volume %s is still being grown", v.handle)
		}
	}
	for _, s := range f.stock.snapshots.all() {
		if s.item.group == "" {
			want = append(want, snapshotsFolder+"/"+s.handle)
		}
		sum += s.item.pool.storage.cost(s.item.record.SizeBytes)
		if _, err := os.Stat(s.item.data()); err != nil {
			t.Errorf("VIOLATION: snapshot %s is not whole: %v", s.handle, err)
		}
	}
	for _, g := range f.stock.groups.all() {
		want = append(want, groupsFolder+"/"+g.handle)
	}
	f.holdsOnly(want...)
	f.promised(sum)
}

// childThatFreezes makes an endless copy of a mounted volume.
func childThatFreezes(dataDir, handle string, out io.Writer) {
	e := openChild(dataDir)
	v, err := e.stock.volumes.get(handle)
	if err != nil {
		panic(err)
	}
	use, err := freeze.Find(context.Background(), v.data())
	if err != nil {
		panic(err)
	}
	if _, err := fmt.Fprintln(out, "freezing"); err != nil {
		panic(err)
	}
	e.freezeLimit = time.Hour
	first, fifo := filepath.Join(dataDir, "first"), filepath.Join(dataDir, "fifo") // Opening the fifo waits for a writer.
	if err := os.WriteFile(first, []byte("x"), 0o600); err != nil {
		panic(err)
	}
	copies := []dataCopy{{from: first, volume: v, to: first + copySuffix, size: 1},
		{from: fifo, volume: v, to: fifo + copySuffix, size: 1}}
	panic(e.copyFrozen(context.Background(), copies, []freeze.Use{use}))
}

// copySuffix is the suffix of the names of the copies that childThatFreezes makes.
const copySuffix = ".copy"

// waitUntilFrozen waits until childThatFreezes has begun to copy. It does not try to freeze the filesystem, which would
// interfere.
func waitUntilFrozen(t *testing.T, dataDir string) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; <-time.After(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dataDir, "first"+copySuffix)); err == nil {
			return
		}
	}
	t.Fatal("the filesystem was not frozen")
}

func TestKilledWhileFrozen(t *testing.T) {
	f := newFixture(t)
	f.options.Config = patient(bothPools()...) // as the child has it
	v, dir := f.mountedVolume(t, "source")
	must(t, writeFile(filepath.Join(dir, "file"), "text"))
	must(t, unix.Mkfifo(filepath.Join(f.dataDir, "fifo"), 0o600))
	f.shut()
	kill, lines := child(t, "freeze", f.dataDir, v.Handle)
	select {
	case line := <-lines:
		if line != "freezing" {
			t.Fatalf("the child said %q", line)
		}
	case <-time.After(patience):
		t.Fatal("the child says nothing")
	}
	t.Cleanup(func() { // In any case, nothing stays frozen.
		if use, err := freeze.Find(context.Background(), f.data(v.Handle)); err == nil {
			_, _ = use.Thaw(context.Background())
		}
	})
	waitUntilFrozen(t, f.dataDir)
	kill()
	for range lines { // Wait for its end.
	}
	if !isFrozen(t, dir) {
		t.Fatal("the kill thawed the filesystem, so that nothing is tested")
	}
	f.open()
	if isFrozen(t, dir) {
		t.Fatal("the filesystem is still frozen") // The following steps would hang.
	}
	if !strings.Contains(f.log.String(), "left frozen was thawed") {
		t.Errorf("the log says nothing of it:\n%s", f.log)
	}
	must(t, writeFile(filepath.Join(dir, "file"), "more"))
	if held, err := frozenNote.holds(f.dir(v.Handle), f.boot); err != nil || held {
		t.Errorf("the note is still there: %t, %v", held, err)
	}
	testfs.Run(t, "sync", "-f", dir)
}
