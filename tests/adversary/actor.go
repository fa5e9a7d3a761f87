package adversary

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// actor is a client with its own volumes and snapshots.
type actor struct {
	*world
	id    int
	steps []Step
	ready func() // says that the actor has come to a Cycle, or has ended

	own       sync.Mutex // guards the fields below
	volumes   [4]*volume
	snapshots [3]*snapshot
	took      map[Op]time.Duration // the last duration
}

// volume is an acknowledged volume.
type volume struct {
	name, id  string
	class     int
	raw       bool
	fsType    string
	bytes     int64
	context   map[string]string
	used      bool // staged and published, or partly so
	formatted bool // it has been used, so no tool has to be started for formatting any more
	damaged   bool
	reading   bool // its use is read-only
	cut       bool // its filesystem was not unmounted cleanly
	retained  bool // it was acknowledged that its data outlives it
	unsure    bool // the last change of that was not acknowledged
	// contents is what was written; nil for a copy that was not read yet.
	contents *contents
	origin   *copied
	leaving  atomic.Bool // its deletion was begun, and not refused
}

// snapshot is an acknowledged snapshot.
type snapshot struct {
	name, id, source string
	class            int
	raw              bool
	bytes            int64
	origin           *copied
	leaving          atomic.Bool // as of a volume
	group            *group      // nil for none
}

// copied is the contents of a copy: the source's contents at some instant between two times.
type copied struct {
	mu       sync.Mutex
	source   *contents
	from, to time.Time
	pinned   vector // the contents that were found the first time
}

// is checks the contents of a copy: the first time against the source, later against the first result.
func (c *copied) is(v vector) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned == nil {
		if err := c.source.instant(v, c.from, c.to); err != nil {
			return err
		}
		c.pinned = v
		return nil
	}
	return newContents(c.pinned).now(v)
}

func newActor(w *world, id int, steps []Step) *actor {
	return &actor{world: w, id: id, steps: steps, ready: func() {}, took: map[Op]time.Duration{}}
}

// run executes the steps.
func (a *actor) run() {
	defer a.ready()
	for _, step := range a.steps {
		if a.failed() {
			return
		}
		a.step(step)
	}
}

// step executes one step, with the step beside it.
func (a *actor) step(s Step) {
	var group sync.WaitGroup
	if s.Fault != nil {
		a.begin(*s.Fault)
	}
	if s.Beside != nil {
		group.Go(func() {
			<-time.After(s.Beside.After)
			a.do(*s.Beside, true)
		})
	}
	a.do(s, s.Beside != nil)
	group.Wait()
}

// do executes a step if it applies.
func (a *actor) do(s Step, company bool) {
	a.own.Lock()
	v, from := a.volumes[s.Slot%len(a.volumes)], a.volumes[s.From%len(a.volumes)]
	shot := a.snapshots[s.From%len(a.snapshots)]
	a.own.Unlock()
	a.note("track %d: %s", a.id, s)
	if s.How == Short {
		a.own.Lock()
		s.Within = max(a.took[s.Op]/4, 10*time.Millisecond)
		a.own.Unlock()
	}
	began := time.Now()
	a.choose(s, v, from, shot, company)
	a.own.Lock()
	defer a.own.Unlock()
	a.took[s.Op] = time.Since(began)
}

// choose executes a step with the contents of its slots, if they fit.
func (a *actor) choose(s Step, v, from *volume, shot *snapshot, company bool) {
	switch {
	case s.Op == List:
		a.list()
	case s.Op == Pause:
		<-time.After(time.Duration(s.Count) * time.Millisecond)
	case s.Op == Group:
		a.group(s, company)
	case s.Op == Forget && shot != nil:
		a.forget(s, shot, company)
	case v != nil:
		a.handle(s, v, company)
	case s.Op == Create:
		a.create(s, copySource{class: s.Class, raw: s.Raw, fsType: s.FSType}, company)
	case s.Op == Restore && shot != nil:
		a.create(s, copySource{class: shot.class, raw: shot.raw, bytes: shot.bytes, origin: shot.origin, snapshot: shot.id},
			company)
	case s.Op == Clone && from != nil && !from.damaged:
		a.create(s, copySource{class: from.class, raw: from.raw, fsType: from.fsType, bytes: from.bytes, volume: from},
			company)
	}
}

// handle executes a step with an existing volume.
func (a *actor) handle(s Step, v *volume, company bool) {
	if do, ok := a.deeds(s, v, company)[s.Op]; ok && a.applies(s, v) {
		do()
	}
}

// deeds returns the actions of the steps that need a volume. Other steps do nothing if there is one.
func (a *actor) deeds(s Step, v *volume, company bool) map[Op]func() {
	return map[Op]func(){
		Delete:   func() { a.delete(s, v, company) },
		Damage:   func() { a.damage(v) },
		Brand:    func() { a.brand(s, v) },
		Glimpse:  func() { a.glimpse(s, v) },
		Cut:      func() { a.cut(s, v) },
		Peek:     func() { a.peek(s, v) },
		Use:      func() { a.use(s, v, company) },
		Leave:    func() { a.leave(s, v, company) },
		Cycle:    func() { a.cycle(s, v) },
		Expand:   func() { a.expand(s, v, company) },
		Modify:   func() { a.modify(s, v, company) },
		Snapshot: func() { a.snapshot(s, v, company) },
		Write:    func() { a.write(s, v) },
		Fill:     func() { a.write(s, v) },
		Read:     func() { a.read(v) },
		Check:    func() { a.check(s, v, company) },
	}
}

// applies reports whether a step fits the present state of a volume.
func (a *actor) applies(s Step, v *volume) bool {
	switch s.Op {
	case Delete:
		return true
	case Snapshot:
		return a.snapshots[s.From%len(a.snapshots)] == nil
	case Damage:
		return !v.used
	default:
		return !v.damaged && a.fitsUse(s, v)
	}
}

// fitsUse reports whether a step fits the present use of a volume.
func (a *actor) fitsUse(s Step, v *volume) bool {
	class := a.setup.Classes[v.class]
	switch s.Op {
	case Use:
		return !v.used && (!class.Aside || a.calm.Load())
	case Peek, Cycle:
		return !v.used
	case Cut:
		return v.used && v.fsType == "xfs"
	case Expand:
		return !v.used || v.raw || !class.Sized
	case Leave, Write, Fill, Read:
		return v.used
	default:
		return true
	}
}

func (a *actor) staging(v *volume) string { return a.path("mounts", "staging", v.name) }
func (a *actor) target(v *volume) string  { return a.path("mounts", "pods", v.name, "mount") }

// data returns the image of a volume of a backend that keeps it in a directory of the handle's name; empty if there is
// none.
func (a *actor) data(v *volume) string {
	found, _ := filepath.Glob(filepath.Join(a.disks[a.setup.Classes[v.class].Disk].dir, "*/volumes", v.id, "image"))
	return strings.Join(found, "") // There is at most one.
}

func capability(raw bool) *csi.VolumeCapability {
	mode := &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}
	if raw {
		return &csi.VolumeCapability{AccessMode: mode,
			AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
	}
	return &csi.VolumeCapability{AccessMode: mode,
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}}
}

// capability returns the volume's capability for its present use.
func (v *volume) capability() *csi.VolumeCapability {
	c := capability(v.raw)
	if m := c.GetMount(); m != nil {
		m.FsType = v.fsType
	}
	if v.reading {
		c.AccessMode.Mode = csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
	}
	return c
}

func (v *volume) String() string { return fmt.Sprintf("%s (%s)", v.name, v.id) }
