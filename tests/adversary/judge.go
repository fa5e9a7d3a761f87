package adversary

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// run runs a schedule, and returns the violations.
func (w *world) run(s Schedule) []string {
	w.calm.Store(false)
	w.disturbed.Store(false)
	w.active.Store("")
	w.shots.Store(0)
	if w.cloud != nil {
		w.cloud.begin(s.Seed)
	}
	w.mu.Lock()
	w.log, w.began, w.silence, w.struck = nil, time.Now(), silence{}, nil
	w.mu.Unlock()
	actors := make([]*actor, len(s.Tracks))
	var group sync.WaitGroup
	w.early.Add(len(actors))
	for i, steps := range s.Tracks {
		actors[i] = newActor(w, i, steps)
		actors[i].ready = sync.OnceFunc(w.early.Done)
		group.Go(actors[i].run)
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(w.lasting(10 * time.Second)):
		// Tracks that still wait may wait for the faults to end, which are short.
	}
	w.faults.Wait()
	w.calm.Store(true)
	<-done
	w.faults.Wait() // those that began meanwhile
	w.settle(actors)
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrong)
}

// settle checks everything when all is quiet, deletes it, and checks what is left.
func (w *world) settle(actors []*actor) {
	steps := []func([]*actor){w.listed, w.promised, w.held, w.removed, w.retains, w.left}
	for _, step := range steps {
		if w.failed() {
			return
		}
		step(actors)
	}
}

// listed compares the driver's lists with the acknowledged items: none is missing, and no deleted or refused item is
// listed.
func (w *world) listed([]*actor) {
	w.lists("volumes", slices.Collect(maps.Keys(w.ledger.volumes)), w.allVolumes)
	w.lists("snapshots", slices.Collect(maps.Keys(w.ledger.snapshots)), w.allSnapshots)
}

// lists compares a list, which may take a moment. A list that cannot be obtained is not an empty one.
func (w *world) lists(what string, want []string, all func() []string) {
	slices.Sort(want)
	wait := w.limits.lists
	if w.known != nil {
		wait = 50 * time.Millisecond // It may be known, and not end.
	}
	for began := time.Now(); ; <-time.After(50 * time.Millisecond) {
		found := all()
		slices.Sort(found)
		if w.failed() || found != nil && slices.Equal(found, want) || found == nil && w.known != nil {
			return
		}
		lacks := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return slices.Contains(found, id) })
		more := slices.DeleteFunc(slices.Clone(found), func(id string) bool { return slices.Contains(want, id) })
		switch took := time.Since(began); {
		case took > min(soon, wait) && len(lacks) == 0 && w.strayed(more):
			return
		case took > wait && found == nil:
			w.blame("no end: when all is quiet, the list of the %s is never read to its end", what)
			return
		case took > wait:
			w.blame("acknowledged means there, deleted and refused means gone: of the %s the list lacks %q and has %q more",
				what, lacks, more)
			return
		}
	}
}

// promised compares the acknowledged sizes with the room on the filesystems.
func (w *world) promised([]*actor) {
	if !w.setup.Counts {
		return
	}
	sums := map[int]int64{}
	for _, v := range w.ledger.volumes {
		sums[w.setup.Classes[v.class].Disk] += v.bytes
	}
	for disk, sum := range sums {
		w.hasRoom(w.disks[disk], sum)
	}
}

// hasRoom blames the driver if a disk has less room for its volumes than was promised: the disk's free space, and the
// space that the driver's own files already take. The rest is foreign data, and the filesystem's own. What was just
// deleted may take up room for a moment.
func (w *world) hasRoom(d *disk, promised int64) {
	for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
		var s unix.Statfs_t
		if err := unix.Statfs(d.dir, &s); err != nil {
			w.blame("%v", err)
			return
		}
		room := int64(s.Bfree)*s.Bsize + d.owned()
		if promised <= room {
			return
		}
		if time.Since(began) > w.limits.lists {
			w.blame("promises never exceed what is there: volumes of %d MiB are acknowledged on a filesystem of %d MiB, which "+
				"has room for %d MiB of them", promised>>20, int64(s.Blocks)*s.Bsize>>20, room>>20)
			return
		}
	}
}

// held reads all volumes, and all snapshots through volumes that are restored from them.
func (w *world) held(actors []*actor) {
	w.exact.Store(true)
	defer w.exact.Store(false)
	each(actors, func(a *actor) {
		for slot, v := range a.volumes {
			switch {
			case v == nil || v.damaged || v.large() && !v.used:
			case v.used:
				a.step(Step{Op: Read, Slot: slot})
			default:
				a.step(Step{Op: Use, Slot: slot})
			}
		}
		for slot, v := range a.volumes {
			if v != nil && v.used {
				a.step(Step{Op: Leave, Slot: slot})
			}
		}
	})
	each(actors, (*actor).readLarge)
	each(actors, func(a *actor) {
		for slot, s := range a.snapshots {
			if s == nil || a.volumes[0] != nil && a.volumes[0].damaged {
				continue
			}
			a.step(Step{Op: Delete, Slot: 0})
			a.step(Step{Op: Restore, Slot: 0, From: slot})
			a.step(Step{Op: Use, Slot: 0})
			a.step(Step{Op: Leave, Slot: 0})
		}
	})
}

// readLarge reads the large volumes, one after the other: a node of a cloud has room for few. Outside a cloud one that
// nobody wrote to is left out, because formatting it takes long and shows nothing.
func (a *actor) readLarge() {
	for slot, v := range a.volumes {
		if v == nil || v.damaged || !v.large() || a.cloud == nil && !v.written() {
			continue
		}
		a.step(Step{Op: Use, Slot: slot})
		a.step(Step{Op: Leave, Slot: slot})
	}
}

// large reports whether a volume is so large that formatting it takes long.
func (v *volume) large() bool { return v.bytes > 64<<20 }

// written reports whether somebody wrote to a volume, or to the source of a copy that was not read yet.
func (v *volume) written() bool {
	c := v.contents
	if c == nil {
		c = v.origin.source
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.files) > 0
}

// each lets all actors act at the same time.
func each(actors []*actor, do func(a *actor)) {
	var group sync.WaitGroup
	for _, a := range actors {
		group.Go(func() { do(a) })
	}
	group.Wait()
}

// removed deletes all.
func (w *world) removed(actors []*actor) {
	each(actors, func(a *actor) {
		for slot, v := range a.volumes {
			if v != nil {
				a.step(Step{Op: Delete, Slot: slot})
			}
		}
		for slot := range a.snapshots {
			a.step(Step{Op: Forget, From: slot})
		}
	})
}

// left finds remains after everything is deleted.
func (w *world) left([]*actor) {
	w.lists("volumes", nil, w.allVolumes)
	w.lists("snapshots", nil, w.allSnapshots)
	more := w.waitForTree(w.baseline, soon)
	if slices.ContainsFunc(more, w.mustGo) && !w.strayed(more) {
		more = w.waitForTree(w.baseline, w.limits.lists)
	}
	if len(more) > 0 && !slices.ContainsFunc(more, w.mustGo) {
		more = w.later()
	}
	if w.strayed(more) {
		more = w.tidied(more)
	}
	if len(more) > 0 {
		w.blame("unaccounted means zero: all is deleted, and there are %d files more than at first: %q", len(more),
			more[:min(4, len(more))])
	}
	if left := w.inKernel(); len(left) > 0 {
		w.blame("unaccounted means zero: all is deleted, and the kernel has %q", left)
	}
	for _, dir := range []string{"staging", "pods"} {
		entries, _ := os.ReadDir(w.path("mounts", dir))
		if len(entries) > 0 {
			w.blame("unaccounted means zero: %s has %d entries", dir, len(entries))
		}
	}
}

// mustGo reports whether a file disappears by itself, without waiting for a call or a start.
func (w *world) mustGo(path string) bool {
	young := w.setup.Ages != "" && strings.Contains(path, w.setup.Ages)
	if w.disturbed.Load() && stayed(path) {
		return false
	}
	return !young && !passing(path)
}

// stayed reports whether a file is a small one of the driver's data directory, which stays if that cannot be written
// to: a record of the node until the next change, and an entry of a pool's index until the pool is opened again.
func stayed(path string) bool {
	return strings.Contains(path, "/data/node/") || strings.Contains(path, "/data/held/")
}

// later returns what is left after a while: a draft without a record may be kept, because a controller may still work
// on it, and the removal of trash is retried. Calls for each class make the driver look at all places again, and so
// does a start.
func (w *world) later() (more []string) {
	w.useAll()
	if slices.ContainsFunc(w.tree(), stayed) {
		_ = w.again(Proper, nothing) // a failure is blamed
	}
	for range 3 {
		<-time.After(draftPatience)
		if more = w.waitForTree(w.baseline, w.limits.lists); len(more) == 0 {
			break
		}
	}
	return more
}

// useAll creates, changes, uses and deletes a volume of each class, and a snapshot, so that every class of calls is
// made.
func (w *world) useAll() {
	for i := range w.setup.Classes {
		a := newActor(w, i, nil)
		for _, op := range []Op{Create, Expand, Snapshot, Use, Leave, Forget, Delete} {
			a.step(Step{Op: op, Class: i, MiB: 8})
		}
	}
}

// inKernel returns the mounts and loop devices of volumes. Another process may hold a loop device for a moment.
func (w *world) inKernel() (left []string) {
	for end := time.Now().Add(w.limits.lists); ; <-time.After(20 * time.Millisecond) {
		left = nil
		mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(w.path("mounts")))
		for _, m := range mounts {
			left = append(left, m.Mountpoint)
		}
		for loop, backing := range w.loops() {
			left = append(left, loop+" over "+backing)
		}
		if len(left) == 0 && err == nil {
			return nil
		}
		if time.Now().After(end) {
			return left
		}
	}
}

// loops returns the loop devices of volumes, by name, with their backing files.
func (w *world) loops() map[string]string {
	found := map[string]string{}
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range files {
		backing, err := os.ReadFile(file)
		text := strings.TrimSpace(string(backing))
		if err == nil && strings.HasPrefix(text, w.workspace.Dir+"/") && !strings.HasPrefix(text, w.path("memory")) {
			found[strings.Split(file, "/")[3]] = text
		}
	}
	return found
}
