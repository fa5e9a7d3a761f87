package nfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// finally returns the second answer: the first may be false because another controller has worked since our last call.
func finally(isAbsent func() bool) bool {
	isAbsent()
	return isAbsent()
}

// absent returns the second answer for a volume.
func (w *world) absent(spec backends.Spec) bool {
	return finally(func() bool { return w.IsAbsent(w.Context(), spec) })
}

// After an item is proven absent, earlier calls to another controller create nothing.
func TestNothingComesOfWhatIsAbsent(t *testing.T) {
	w := newWorld(t)
	w.make(specOf("earlier"))
	other, spec := w.otherWorld(), specOf("one")
	other.leads()
	m, r := other.planned(spec)
	if !w.absent(spec) {
		t.Error("what nobody has begun is not absent")
	}
	if err := m.makeEmpty(t.Context(), r); err == nil {
		t.Error("another controller made it after that")
	}
	if !w.absent(spec) {
		t.Error("it is not absent, after another controller has failed to make it")
	}
}

// An attempt that has begun may still be published: nothing is proven, and it is not ended.
func TestWhatIsBegunIsNotAbsent(t *testing.T) {
	w := newWorld(t)
	other, v := w.otherWorld(), w.make(specOf("one"))
	m, r := other.begun("begun", v)
	spec := backends.SnapshotSpec{Name: "begun", Volume: v.Handle}
	isAbsent := func() bool { return w.IsSnapshotAbsent(t.Context(), spec) }
	if finally(isAbsent) {
		t.Error("a snapshot that is being made is absent")
	}
	w.must(m.publish(t.Context(), r))
	if finally(isAbsent) {
		t.Error("a snapshot that is there is absent")
	}
}

// plannedGroup returns an attempt at a group of a volume, on the share of a spec. It has a permit, but no token yet.
func (w *world) plannedGroup(on backends.Spec, spec backends.GroupSpec) (*making, *record) {
	w.Helper()
	m := w.making(on, snapshotCalls)
	id, err := m.home.ID(string(groupKind), spec.Name)
	w.must(err)
	r, err := m.plannedGroup(spec, id, true)
	w.must(err)
	return m, r
}

// After a group is proven absent, an earlier call to another controller does not create it. Records of its snapshots
// that a dead attempt has left do not count as a group: they are never published without its token.
func TestNothingComesOfAGroupThatIsAbsent(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	w.quiet(specOf("one")) // Otherwise the janitor removes the remains.
	other, spec := w.otherWorld(), backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}}
	isAbsent := func() bool { return w.IsGroupAbsent(t.Context(), spec) }
	m, r := other.plannedGroup(specOf("any"), spec)
	if !finally(isAbsent) {
		t.Error("a group that nobody has begun is not absent")
	}
	if err := m.begin(r); err == nil {
		t.Error("another controller began it after that")
	}
	m, r = w.plannedGroup(specOf("any"), spec)
	w.must(m.draft(t.Context(), r))
	if finally(isAbsent) {
		t.Error("a group that is being made is absent")
	}
	w.must(m.home.Remove(share.Staging, r.key()+suffix))
	left, err := filepath.Glob(w.path(share.HomeName, share.Staging, r.key()+".m*"+suffix))
	if len(left) != 1 || err != nil {
		t.Fatalf("the records of snapshots that are left: %q, %v; want one", left, err)
	}
	if !finally(isAbsent) {
		t.Error("a group of which only records of its snapshots are left is not absent")
	}
	if err := m.publish(t.Context(), r); err == nil {
		t.Error("it was published after that")
	}
}

// An unfinished item of a controller of an earlier version is not absent.
func TestWhatEarlierVersionsMakeIsNotAbsent(t *testing.T) {
	w := newWorld(t)
	w.quiet(specOf("earlier")) // Otherwise the janitor gives it up.
	v := w.make(specOf("earlier"))
	_, h := w.opened(specOf("earlier"))
	for k, isAbsent := range map[kind]func() bool{
		volumeKind: func() bool { return w.IsAbsent(t.Context(), specOf("one")) },
		snapshotKind: func() bool {
			return w.IsSnapshotAbsent(t.Context(), backends.SnapshotSpec{Name: "one", Volume: v.Handle})
		},
		groupKind: func() bool {
			return w.IsGroupAbsent(t.Context(), backends.GroupSpec{Name: "one", Volumes: []string{v.Handle}})
		},
	} {
		id, err := h.ID(string(k), "one")
		w.must(err)
		if !isAbsent() {
			t.Errorf("before it is made the %s is not absent", k)
		}
		making := string(k) + "-" + id + suffix
		w.write("{}", share.HomeName, share.Making, making)
		if isAbsent() {
			t.Errorf("while it is made the %s is absent", k)
		}
		w.must(h.Remove(share.Making, making))
		if !isAbsent() {
			t.Errorf("after it was given up the %s is not absent", k)
		}
	}
}

// A share of an earlier version lacks folders. The look creates the one for permits; without the one for burials, the
// share has no burials. A permit of such a version is for all calls, and a look ends it.
func TestOnAShareOfAnEarlierVersion(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	w.quiet(spec)
	w.make(specOf("earlier"))
	w.must(os.RemoveAll(w.path(share.HomeName, share.Controllers)))
	if !w.absent(spec) {
		t.Error("without the folder of the permits it is not absent")
	}
	w.must(os.Remove(w.path(share.HomeName, share.Burials)))
	if !w.absent(spec) {
		t.Error("without the folder of the burials it is not absent")
	}
	w.write("", share.HomeName, share.Controllers, "earlier")
	if !w.IsAbsent(t.Context(), spec) {
		t.Error("beside a permit for all calls it is not absent")
	}
	if _, err := os.Lstat(w.path(share.HomeName, share.Controllers, "earlier")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the look the permit of the earlier version: %v, want that it is gone", err)
	}
}

// A deletion is stopped after the record is buried. Another controller is stopped in the middle of a change, with its
// draft. The change does not bring back what is proven absent then.
func TestNoChangeBringsBackWhatIsAbsent(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	w.quiet(spec)
	other := w.otherWorld()
	other.quiet(spec)
	v := w.make(spec)
	other.make(specOf("two"))
	called, isAbsent := 0, false
	err := w.rewriting(t.Context(), v.Handle, "changing", func(_ *share.Share, r *record) error {
		if called++; called == 2 { // The draft exists.
			_, h := w.opened(spec)
			w.must(w.bury(h, r))
			isAbsent = other.absent(spec)
		}
		r.SizeBytes++
		return nil
	})
	if !isAbsent {
		t.Error("what was buried is not absent")
	}
	w.fails("the change", err, backends.Busy)
	w.fails("finding it", second(w.Find(t.Context(), spec)), backends.NotFound)
}

// No caller is told to retry a look that is turned away. So the next call for its item may be from before too.
func TestALookThatIsTurnedAwayIsNoCall(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	w.make(specOf("earlier"))
	w.otherWorld().leads()
	if w.IsAbsent(t.Context(), spec) {
		t.Error("after another controller was called it is absent at once")
	}
	_, err := w.Create(t.Context(), spec)
	w.fails("a call that may be from before", err, backends.Busy, errOvertaken.Error())
	_, err = w.Create(t.Context(), spec)
	w.must(err)
}

// A controller proves nothing if it has lost its permit since the look began, has got another one since, or is not
// alone: others may have been called meanwhile.
func TestWhoStillLeads(t *testing.T) {
	w := newWorld(t)
	m := w.making(specOf("one"), volumeCalls)
	leads := func() error { return m.stillLeads(m.home, volumeCalls, m.turn) }
	w.must(leads())
	w.must(m.home.Permit("another"))
	w.fails("beside another controller", leads(), backends.Busy)
	w.must(m.home.Remove(share.Controllers, "another"))
	w.must(leads())
	w.otherWorld().leads()
	w.fails("after another controller was called", leads(), backends.Busy, errOvertaken.Error())
	w.leads()
	w.fails("with a later permit", leads(), backends.Busy)
	m.turn++
	w.must(leads())
}

// A controller without a permit on the share, for lack of room, proves nothing. A controller that never had one may
// receive an earlier call once there is room, and nothing shows it that we were called. A controller with a permit
// needs no room.
func TestNothingIsProvenWithoutAPermit(t *testing.T) {
	w := newWorld(t)
	w.must(unix.Mount("few", w.root, "tmpfs", 0, "nr_inodes=64"))
	t.Cleanup(func() { w.must(unix.Unmount(w.root, unix.MNT_DETACH)) })
	v := w.make(specOf("one"))
	w.leads()
	fill := func() (fillers []string) {
		t.Helper()
		var err error
		for n := 0; err == nil; n++ {
			path := w.path(fmt.Sprint("filler", n))
			if err = os.WriteFile(path, nil, 0o600); err == nil {
				fillers = append(fillers, path)
			}
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("the share is full by %v", err)
		}
		return fillers
	}
	first := fill()
	spec := backends.SnapshotSpec{Name: "s", Volume: v.Handle}
	if !w.IsSnapshotAbsent(t.Context(), spec) || !w.IsAbsent(t.Context(), specOf("two")) {
		t.Error("with a permit nothing is proven on a full share")
	}
	permits, err := filepath.Glob(w.path(share.HomeName, share.Controllers, "*"))
	w.must(err)
	for _, path := range append(permits, first...) { // Another controller was called, and is gone.
		w.must(os.Remove(path))
	}
	fillers := fill()
	if finally(func() bool { return w.IsAbsent(t.Context(), specOf("two")) }) {
		t.Error("a controller whose permit was taken away proves something on a full share")
	}
	fresh := w.otherWorld()
	isAbsent := func() bool { return fresh.IsSnapshotAbsent(t.Context(), spec) }
	if finally(isAbsent) {
		t.Error("a controller that never had a permit proves something on a full share")
	}
	w.must(os.Remove(fillers[0]))
	if !finally(isAbsent) {
		t.Error("with room for a permit nothing is proven")
	}
	fresh.shut()
	w.shut()
}

// A proof needs to write, so that others see it. Nothing is proven about a read-only share: a stopped controller may
// resume once it is writable.
func TestNothingIsProvenOfAReadOnlyShare(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	mount := func(flags uintptr) { w.must(unix.Mount("read-only", w.root, "tmpfs", flags, "")) }
	mount(0)
	t.Cleanup(func() { w.must(unix.Unmount(w.root, unix.MNT_DETACH)) })
	w.quiet(spec)
	w.make(specOf("earlier"))
	mount(unix.MS_REMOUNT | unix.MS_RDONLY)
	if w.absent(spec) {
		t.Error("on a share that is read-only it is absent")
	}
	mount(unix.MS_REMOUNT)
	if !w.absent(spec) {
		t.Error("once the share can be written to it is not absent")
	}
	w.shut()
}
