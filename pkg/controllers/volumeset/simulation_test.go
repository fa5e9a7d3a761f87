package volumeset

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

func volumeOf(size int64) csiclient.Volume {
	return csiclient.Volume{Handle: "handle", SizeBytes: size}
}

var (
	simSeed  = flag.Uint64("seed", 1, "the first seed of the simulation")                            //nolint:gochecknoglobals // A flag.
	simSteps = flag.Int("steps", 200_000, "how many steps the simulation takes, with as many seeds") //nolint:gochecknoglobals // A flag.
)

// TestSimulation runs the whole manager in worlds where claims come and go, people and drivers err, managers are
// killed, and caches lag.
func TestSimulation(t *testing.T) {
	for seed, steps := *simSeed, 0; steps < *simSteps; seed++ {
		w := newWorld(seed)
		w.live(1000)
		steps += w.steps
		if w.broken != "" {
			log := strings.Join(w.log[max(0, len(w.log)-100):], "\n")
			t.Fatalf("seed %d, after %d steps, %d in all: %s\n%s", seed, w.steps, steps, w.broken, log)
		}
	}
}

// TestSimulationRepeats checks that a seed determines the whole run.
func TestSimulationRepeats(t *testing.T) {
	var logs [2]string
	for i := range logs {
		w := newWorld(*simSeed)
		w.live(1000)
		logs[i] = strings.Join(w.log, "\n")
	}
	if logs[0] != logs[1] {
		t.Errorf("seed %d has two lives:\n%s\n\n%s", *simSeed, logs[0], logs[1])
	}
}

func newWorld(seed uint64) *world {
	w := &world{
		Rand: rand.New(rand.NewPCG(seed, 0)), clock: time.Unix(1_000_000, 0), owner: map[string]string{},
		taken: map[string]bool{}, used: map[string]bool{},
	}
	w.api = newStore(w.now)
	w.driver = newDriver(w)
	set := stored()
	w.mild, w.zones = w.IntN(3) == 0, w.IntN(2) == 0
	if w.mild && !w.zones && w.IntN(8) == 0 {
		w.text = strings.Repeat("x", 480<<10)
		set.Spec.Template.Metadata.Annotations = map[string]string{"text": w.text}
	}
	if w.zones && w.IntN(3) == 0 {
		w.driver.full = "a"
	}
	w.restless, w.proves = w.IntN(3) == 0, w.IntN(3) == 0
	for k := range w.paces {
		w.paces[k] = pace(w.IntN(int(paces)))
	}
	minimum := 1 + w.Int32N(6)
	set.Spec.MinimumReplicas, set.Spec.MaximumReplicas = minimum, minimum+w.Int32N(4)
	if w.wide = w.text == "" && w.restless && w.IntN(4) == 0; w.wide {
		set.Spec.MinimumReplicas, set.Spec.MaximumReplicas = 80, 120
	}
	if w.IntN(4) == 0 {
		set.Spec.Template.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		w.recycles = w.IntN(2) == 0
	}
	slow := fast()
	slow.Name = "slow"
	_ = w.api.create(fast(), false)
	_ = w.api.create(slow, false)
	_ = w.api.create(set, false)
	w.lead()
	return w
}

// live runs a world: each step has an event, and then everything comes to rest.
func (w *world) live(steps int) {
	defer func() {
		for len(w.tasks) > 0 {
			w.kill(w.tasks[0])
		}
	}()
	for range steps {
		if w.step(); w.broken != "" {
			return
		}
	}
	w.note("nothing happens any more")
	w.calm = true
	for _, m := range w.managers[:len(w.managers)-1] {
		m.kill()
	}
	if w.IntN(4) == 0 {
		w.fillUp()
	}
	for range 10_000 {
		if !w.settle() || w.broken != "" {
			break
		}
	}
	w.atRest()
}

// fillUp deletes the set while its driver has no more room.
func (w *world) fillUp() {
	w.note("the driver is full, and the set is deleted")
	w.driver.full = allZones
	for range 300 {
		w.settle()
	}
	if w.api.set() != nil {
		_ = w.api.delete(sets, "set", nil)
	}
}

// settle continues the work in progress, and reports whether there was any.
func (w *world) settle() bool {
	w.steps++
	m := w.managers[0]
	w.check()
	w.driver.carryOn()
	w.handOver()
	for k := range kinds {
		m.cache.follow(k, 1_000_000)
	}
	if len(w.tasks) > 0 {
		w.resume(w.tasks[w.IntN(len(w.tasks))])
		return true
	}
	for _, v := range w.api.volumes() {
		if w.kubernetes(v.DeepCopy()) {
			return true
		}
	}
	return m.act() || w.wait()
}

// wait advances the clock until work is due.
func (w *world) wait() bool {
	m := w.managers[0]
	next := m.wake
	for _, key := range m.queue.waiting {
		if set := w.api.set(); set != nil {
			if slot := slotOf(set, key.slot); slot != nil && w.isStuck(*slot) && m.sets.filler.progressOf(key).stuck {
				continue // It waits forever.
			}
		}
		if due := m.queue.due[key]; next.IsZero() || due.Before(next) {
			next = due
		}
	}
	for _, due := range m.leaving {
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	if next.IsZero() {
		return false
	}
	w.clock = next
	return true
}

// atRest checks the invariants that hold once all work is done.
func (w *world) atRest() {
	if w.broken != "" {
		return
	}
	w.check()
	set, all := w.api.set(), w.api.volumes()
	stuck := 0
	if set != nil {
		for _, slot := range set.Status.Slots {
			if w.isStuck(slot) {
				stuck++
			}
		}
	}
	if m := w.managers[0]; len(w.tasks)+len(m.queue.waiting)+len(m.leaving) > stuck || !m.wake.IsZero() {
		w.violate("IT NEVER RESTS: %d tasks, %d slots, %d removals", len(w.tasks), len(m.queue.waiting), len(m.leaving))
		return
	}
	for _, v := range all {
		if v.DeletionTimestamp != nil && (v.Spec.ClaimRef == nil || v.Status.Phase == corev1.VolumeReleased) {
			w.violate("A VOLUME NEVER GOES: %s is being deleted, and has the finalizers %q", v.Name, v.Finalizers)
		}
	}
	if set == nil {
		for _, v := range all {
			isKept := v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
			if !isKept && v.Status.Phase == corev1.VolumeAvailable && v.Spec.ClaimRef == nil && v.Spec.CSI != nil &&
				v.Labels["pool"] == "a" {
				w.violate("A DELETED SET LEFT %s", v.Name)
			}
		}
		return
	}
	if set.DeletionTimestamp != nil && stuck > 0 && stuck == len(set.Status.Slots) {
		if said := set.Status.Conditions[0]; said.Reason != reasonRefused {
			w.violate("A SET THAT IS HELD DOES NOT SAY WHY: %+v", said)
		}
		return
	}
	if set.DeletionTimestamp != nil {
		w.violate("THE SET NEVER GOES: %+v", set.Status)
		return
	}
	var counted []*corev1.PersistentVolume
	for _, v := range all {
		if v.Labels["pool"] == "a" {
			counted = append(counted, v)
		}
	}
	c := count(set, counted)
	minimum, maximum := int(set.Spec.MinimumReplicas), int(set.Spec.MaximumReplicas)
	if strays := w.strays(set); int(set.Status.RelabelledReplicas) != strays {
		w.violate("RELABELLED VOLUMES ARE NOT COUNTED: %d of %d", set.Status.RelabelledReplicas, strays)
	}
	if want := w.classes(set); !slices.Equal(set.Status.Classes, want) {
		w.violate("THE CLASSES ARE UNTRUE: %q, and there are unbound volumes in %q", set.Status.Classes, want)
	}
	fresh := upToDate(set, counted)
	isHeld := w.lost(set) >= maximum
	if want := min(minimum, max(fresh, maximum-(c.total-fresh))); fresh < want && !isHeld || c.slots > stuck {
		w.violate("NOT FILLED at rest: %d are ready and of the template, want %d: %+v", fresh, want, c)
	}
	if isFilled := set.Status.Conditions[0].Reason == reasonFilled; isFilled != (fresh >= minimum) {
		w.violate("THE CONDITION IS UNTRUE: %d of %d are ready and of the template: %+v", fresh, minimum,
			set.Status.Conditions)
	}
}

// upToDate returns the number of volumes that claims of the template can bind to, except the set's own of an earlier
// template.
func upToDate(set *v1alpha1.PersistentVolumeSet, volumes []*corev1.PersistentVolume) (number int) {
	for _, v := range volumes {
		isOwn := v.Annotations[v1alpha1.VolumeSetAnnotation] == string(set.UID)
		isUnbound := v.Status.Phase == corev1.VolumeAvailable && v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil
		isOld := isOwn && v.Annotations[v1alpha1.TemplateAnnotation] != templateDigest(set.Spec.Template)
		if isUnbound && !isOld && v.Spec.StorageClassName == set.Spec.Template.Spec.StorageClassName {
			number++
		}
	}
	return number
}

// classes returns the classes that may have unbound volumes of the set: the template's, those of its slots, and those
// of the volumes that it created or that count in it.
func (w *world) classes(set *v1alpha1.PersistentVolumeSet) (all []string) {
	all = append(all, set.Spec.Template.Spec.StorageClassName)
	for _, order := range set.Status.Orders {
		all = append(all, order.Template.Spec.StorageClassName)
	}
	for _, v := range w.api.volumes() {
		isOf := v.Labels["pool"] == "a" || v.Annotations[v1alpha1.VolumeSetAnnotation] == string(set.UID)
		if isOf && v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil {
			all = append(all, v.Spec.StorageClassName)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lost returns the number of unbound volumes that the set created and that have other labels now. If there are as many
// as its maximum, the set creates none.
func (w *world) lost(set *v1alpha1.PersistentVolumeSet) (number int) {
	for _, v := range w.api.volumes() {
		if v.Annotations[v1alpha1.VolumeSetAnnotation] == string(set.UID) && v.Labels["pool"] != "a" &&
			v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil {
			number++
		}
	}
	return number
}

// strays returns the number of volumes that the set created and that have other labels now.
func (w *world) strays(set *v1alpha1.PersistentVolumeSet) (number int) {
	for _, v := range w.api.volumes() {
		if v.Annotations[v1alpha1.VolumeSetAnnotation] == string(set.UID) && v.Labels["pool"] != "a" {
			number++
		}
	}
	return number
}
