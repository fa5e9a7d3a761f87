package volumeset

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// world has a set, an API server, a driver and managers, one of which leads. One task at a time runs until its next
// call. The next task and all other events are drawn at random. The world has its own clock.
type world struct {
	*rand.Rand
	api      *store
	driver   *driver
	managers []*manager
	tasks    []*task
	running  *task
	clock    time.Time
	calm     bool   // no more events or failures
	mild     bool   // the driver and the API server do not fail, and one manager leads
	zones    bool   // the driver's topology has two zones
	proves   bool   // a refusal by the driver proves that no volume exists; only the leader reaches the driver
	recycles bool   // released volumes of the policy Retain are scrubbed and given back
	text     string // of an annotation of the template
	paces    [kinds]pace
	restless bool // leaders change often
	wide     bool // the set needs many volumes, and may have the maximum number of slots
	steps    int
	owner    map[string]string // of slots
	taken    map[string]bool   // slots that were taken over
	used     map[string]bool   // volumes that were bound to a claim
	bound    []string          // volumes that csi-provisioner saw bound and has not put its finalizer on yet
	slots    int               // number of names used
	log      []string
	broken   string // the first violation
}

// task is work of a manager. It stops before each call.
type task struct {
	name  string
	m     *manager
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ended func()
	dead  bool
}

var errKilled = errors.New("the manager was killed")

// begin begins a task; ended is called when it is over, unless it was killed.
func (w *world) begin(m *manager, name string, work, ended func()) {
	t := &task{name: name, m: m, ended: ended}
	t.next, t.stop = iter.Pull(iter.Seq[struct{}](func(yield func(struct{}) bool) {
		t.yield = yield
		work()
	}))
	w.tasks = append(w.tasks, t)
}

// resume runs a task until its next call.
func (w *world) resume(t *task) {
	w.running = t
	if _, more := t.next(); !more {
		w.tasks = slices.DeleteFunc(w.tasks, func(other *task) bool { return other == t })
		if !t.dead {
			t.ended()
		}
	}
	w.running = nil
}

// kill ends a task before its next call.
func (w *world) kill(t *task) {
	t.dead = true
	w.running = t
	t.stop()
	w.running = nil
	w.tasks = slices.DeleteFunc(w.tasks, func(other *task) bool { return other == t })
}

// pause stops a task before a call. It fails if the task is killed there.
func (w *world) pause() error {
	t := w.running
	if t.dead || !t.yield(struct{}{}) {
		t.dead = true
		return errKilled
	}
	return nil
}

func (w *world) now() time.Time { return w.clock }

func (w *world) note(format string, arguments ...any) {
	w.log = append(w.log, fmt.Sprintf("%5d ", w.steps)+fmt.Sprintf(format, arguments...))
}

func (w *world) violate(format string, arguments ...any) {
	w.note("VIOLATION: "+format, arguments...)
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, arguments...)
	}
}

// isOurs reports whether the set created the volume and it still counts.
func (w *world) isOurs(v *corev1.PersistentVolume) bool {
	set := w.api.set()
	return set != nil && v.Annotations[v1alpha1.VolumeSetAnnotation] == string(set.UID) &&
		selector(set).Matches(labels.Set(v.Labels))
}

func (w *world) hasSlot(name string) bool {
	set := w.api.set()
	return set != nil && slices.ContainsFunc(set.Status.Slots, func(s v1alpha1.VolumeSlot) bool { return s.Name == name })
}

// promised returns the number of volumes that the set has created or will create.
func (w *world) promised() int {
	names := map[string]bool{}
	for _, v := range w.api.volumes() {
		if w.isOurs(v) {
			names[v.Name] = true
		}
	}
	if set := w.api.set(); set != nil {
		for _, slot := range set.Status.Slots {
			names[slot.Name] = true
		}
	}
	return len(names)
}

// mustFit checks that a write did not exceed the maximum.
func (w *world) mustFit(before int) {
	set := w.api.set()
	if set == nil {
		return
	}
	if after := w.promised(); after > before && after > int(set.Spec.MaximumReplicas) {
		w.violate("THE MAXIMUM IS EXCEEDED: there are %d of at most %d, and there were %d", after, set.Spec.MaximumReplicas,
			before)
	}
}

func (w *world) mustBeUnbound(v *corev1.PersistentVolume) {
	isReleased := v.Status.Phase == corev1.VolumeReleased || v.Status.Phase == corev1.VolumeFailed
	if v.Spec.ClaimRef != nil && !isReleased {
		w.violate("A BOUND VOLUME IS DELETED: %s", v.Name)
	}
}

// check checks the invariants that always hold.
func (w *world) check() {
	w.watch()
	for name, handle := range w.driver.volumes {
		v, _ := w.api.live[volumes][name].(*corev1.PersistentVolume)
		if (v == nil || v.Spec.CSI.VolumeHandle != handle) && !w.hasSlot(name) {
			w.violate("A VOLUME IS LEAKED: %s has neither slot nor PersistentVolume", handle)
		}
	}
	for _, v := range w.api.volumes() {
		w.mustBeGuarded(v)
		w.mustBeKept(v)
		isKept := v.DeletionTimestamp == nil && v.Status.Phase != corev1.VolumeReleased && v.Spec.CSI != nil
		if isKept && w.driver.volumes[v.Name] != v.Spec.CSI.VolumeHandle {
			w.violate("A VOLUME IS LOST: the PersistentVolume %s is of %s, and that is not there", v.Name,
				v.Spec.CSI.VolumeHandle)
		}
	}
}

// mustBeKept checks that no claim can get a volume that a person keeps: it may have the data of an earlier claim.
func (w *world) mustBeKept(v *corev1.PersistentVolume) {
	if v.DeletionTimestamp == nil && v.Spec.CSI != nil && w.driver.kept[v.Name] == v.Spec.CSI.VolumeHandle {
		w.violate("A KEPT VOLUME IS OFFERED AGAIN: %s", v.Spec.CSI.VolumeHandle)
	}
}

// mustBeGuarded checks that the set names the class of each volume that it created and that was never bound: the policy
// keeps restores out of the named classes.
func (w *world) mustBeGuarded(v *corev1.PersistentVolume) {
	set := w.api.set()
	isIdle := v.DeletionTimestamp == nil && !w.used[v.Name]
	if set == nil || !isIdle || v.Annotations[v1alpha1.VolumeSetAnnotation] != string(set.UID) {
		return
	}
	class := v.Spec.StorageClassName
	if class != set.Spec.Template.Spec.StorageClassName && !slices.Contains(set.Status.Classes, class) {
		w.violate("A RESTORE IS LET IN: %s is unbound in the class %s, and the set names %q", v.Name, class,
			set.Status.Classes)
	}
}

// watch records which slots change from one manager to another.
func (w *world) watch() {
	set := w.api.set()
	if set == nil {
		return
	}
	for _, slot := range set.Status.Slots {
		if before, ok := w.owner[slot.Name]; ok && before != slot.Manager {
			w.taken[slot.Name] = true
		}
		w.owner[slot.Name] = slot.Manager
	}
}

// isStuck reports whether only an unavailable proof could end a slot: its volume may exist as far as its manager knows,
// and the driver has no room for it.
func (w *world) isStuck(slot v1alpha1.VolumeSlot) bool {
	isOpen := w.driver.open[slot.Name] || w.taken[slot.Name]
	return isOpen && !w.proves && w.driver.volumes[slot.Name] == "" && w.driver.isFull(slot.Segments)
}

// step runs one random event.
func (w *world) step() {
	w.steps++
	w.clock = w.clock.Add(time.Duration(w.IntN(2000)) * time.Millisecond)
	switch number := w.IntN(200); {
	case number < 110 && len(w.tasks) > 0:
		w.resume(w.tasks[w.IntN(len(w.tasks))])
	case number < 135:
		w.managers[w.IntN(len(w.managers))].act()
	case number < 150:
		w.managers[w.IntN(len(w.managers))].cache.follow(kind(w.IntN(int(kinds))), 1+w.IntN(6))
	case number < 154:
		w.driver.carryOn()
	case number < 196:
		w.happen()
	case number < 199 && !w.mild && (w.restless || w.IntN(9) == 0):
		w.succeed()
	case w.managers[0].deposed:
		w.managers[0].kill() // It notices that it does not lead.
	}
	switch w.IntN(20) {
	case 0:
		w.handOver()
	case 1:
		w.free()
	}
	w.keepUp()
	w.check()
}

// succeed lets another manager lead. The previous one is killed, or has not noticed yet.
func (w *world) succeed() {
	for _, m := range slices.Clone(w.managers) {
		if m.deposed || w.IntN(2) == 0 {
			m.kill()
		}
		m.deposed = true
	}
	w.lead()
}

func (w *world) lead() {
	m := newManager(w, fmt.Sprintf("manager-%d", w.steps))
	w.managers = append(w.managers, m)
	w.note("%s leads", m.name)
}
