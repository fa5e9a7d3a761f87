package nodestorage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

const (
	disk = v1alpha1.VolumeName("disk-1")
	name = "local-1"
	uid  = "0a1b"
)

// change changes a view.
type change func(*view)

// viewOf returns a view of the existing node "node", with a class of raw block volumes.
func viewOf(changes ...change) view {
	v := view{
		storage: &v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "node"}},
		labels:  map[string]string{}, isFresh: true, hostname: "node",
		volumes: map[string]*corev1.PersistentVolume{}, proven: map[string]bool{}, births: map[string]birth{},
		classes: []class{{name: "disks", reclaim: corev1.PersistentVolumeReclaimDelete,
			settings: settings{VolumeMode: "Block", WipePolicy: v1alpha1.WipeZero}}},
		rules: Rules{Devices: "/links", Mounts: []string{"/mnt/disks"}},
	}
	for _, c := range changes {
		c(&v)
	}
	return v
}

// found adds a disk to the worker's report.
func found(state v1alpha1.LocalVolumeState, changes ...func(*v1alpha1.LocalVolumeStatus)) change {
	f := v1alpha1.LocalVolumeStatus{Name: disk, Path: "/links/disk-1", Capacity: "1Gi",
		VolumeMode: corev1.PersistentVolumeBlock, State: state}
	for _, c := range changes {
		c(&f)
	}
	return func(v *view) { v.storage.Status.LocalVolumes = append(v.storage.Status.LocalVolumes, f) }
}

func at(path string) func(*v1alpha1.LocalVolumeStatus) {
	return func(f *v1alpha1.LocalVolumeStatus) { f.Path = path }
}

// second makes the report about another disk.
func second(f *v1alpha1.LocalVolumeStatus) { f.Name, f.Path = "disk-2", "/links/disk-2" }

func mount(f *v1alpha1.LocalVolumeStatus) { f.VolumeMode = corev1.PersistentVolumeFilesystem }

func size(text string) func(*v1alpha1.LocalVolumeStatus) {
	return func(f *v1alpha1.LocalVolumeStatus) { f.Capacity = v1alpha1.Size(text) }
}

// offer adds an offer of the disk.
func offer(changes ...func(*v1alpha1.VolumeOffer)) change {
	o := v1alpha1.VolumeOffer{
		Volume: disk, PersistentVolume: name, StorageClassName: "disks", Path: "/links/disk-1",
		Capacity:   resource.MustParse("1Gi"),
		VolumeMode: corev1.PersistentVolumeBlock, ReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		WipePolicy: v1alpha1.WipeZero,
	}
	for _, c := range changes {
		c(&o)
	}
	return func(v *view) { v.storage.Spec.Offers = append(v.storage.Spec.Offers, o) }
}

// place is the path of an offered filesystem.
const place = "/mnt/disks/a"

// mounted makes the offer about a filesystem.
func mounted(o *v1alpha1.VolumeOffer) {
	o.VolumeMode, o.Path = corev1.PersistentVolumeFilesystem, place
}

func keeps(o *v1alpha1.VolumeOffer)    { o.ReclaimPolicy = corev1.PersistentVolumeReclaimRetain }
func retained(o *v1alpha1.VolumeOffer) { o.Retained = true }

// deletion adds a requested deletion with the ID, and its state in the worker's report.
func deletion(id v1alpha1.OperationID, state v1alpha1.DeleteState, changes ...func(*v1alpha1.DeleteStatus)) change {
	s := v1alpha1.DeleteStatus{ID: id, Volume: disk, State: state}
	for _, c := range changes {
		c(&s)
	}
	return func(v *view) {
		v.storage.Spec.DeleteOperations = append(v.storage.Spec.DeleteOperations,
			v1alpha1.DeleteRequest{ID: id, Volume: disk, Policy: v1alpha1.WipeZero})
		v.storage.Status.DeleteOperations = append(v.storage.Status.DeleteOperations, s)
	}
}

// volume adds the PersistentVolume of the offer, in a phase. It names a claim in all phases except Available.
func volume(phase corev1.PersistentVolumePhase, changes ...func(*corev1.PersistentVolume)) change {
	v := viewOf(offer())
	pv := persistentVolume("node", "node", v.storage.Spec.Offers[0])
	pv.UID, pv.Status.Phase = uid, phase
	if phase != corev1.VolumeAvailable {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "a", Name: "claim", UID: "c"}
	}
	for _, c := range changes {
		c(pv)
	}
	return func(v *view) { v.volumes[pv.Name] = pv }
}

func placed(pv *corev1.PersistentVolume)  { pv.Spec.Local.Path = place }
func deleted(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &metav1.Time{} }
func loose(pv *corev1.PersistentVolume)   { pv.Finalizers = nil }
func nobodys(pv *corev1.PersistentVolume) {
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: nobody, UID: "c"}
}

// namesakes makes the volume that of a claim that has nobody's name, and promised that of one that is not bound yet.
func namesakes(pv *corev1.PersistentVolume) {
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "a", Name: nobody, UID: "c"}
}
func promised(pv *corev1.PersistentVolume) {
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "a", Name: "claim"}
}
func kept(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}
func ofAnother(pv *corev1.PersistentVolume) {
	pv.Annotations[v1alpha1.LocalVolumeAnnotation] = "disk-2"
}

// unnamed removes the annotation with the name of the volume, as a person does by mistake.
func unnamed(pv *corev1.PersistentVolume) { delete(pv.Annotations, v1alpha1.LocalVolumeAnnotation) }

func files(v *view) { v.classes[0].VolumeMode = "" }

// full adds the maximum number of deletions.
func full(v *view) {
	for i := range most {
		v.storage.Spec.DeleteOperations = append(v.storage.Spec.DeleteOperations, v1alpha1.DeleteRequest{
			ID: v1alpha1.OperationID(fmt.Sprintf("absent-%d", i)), Volume: v1alpha1.VolumeName(fmt.Sprintf("other-%d", i)),
			Policy: v1alpha1.WipeZero})
	}
}
func proven(v *view)  { v.proven[name] = true }
func unmade(v *view)  { v.births[name] = untried }
func tried(v *view)   { v.births[name] = uncertain }
func refused(v *view) { v.births[name] = barred }

// labelled gives the node a hostname that is not its name, and counted sets the rivals with that hostname.
func labelled(v *view) { v.hostname = "other" }
func counted(rivals ...string) change {
	return func(v *view) { v.isCounted, v.rivals = true, rivals }
}
func ready(v *view) {
	v.storage.Status.Conditions = []v1alpha1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
}
func stale(v *view)  { v.isFresh = false }
func gone(v *view)   { v.labels, v.isGone = nil, true }
func away(v *view)   { v.labels = nil }
func ending(v *view) { v.storage.DeletionTimestamp = &metav1.Time{} }
func annotated(key, value string) change {
	return func(v *view) { metav1.SetMetaDataAnnotation(&v.storage.ObjectMeta, key, value) }
}
func retiring(v *view) { gone(v); ending(v) }

// described returns the actions as text.
func (a actions) described() string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	for verb, list := range map[string][]v1alpha1.VolumeOffer{"create": a.create, "occupy": a.occupy} {
		for _, o := range list {
			say("%s %s", verb, o.PersistentVolume)
		}
	}
	for verb, list := range map[string][]*corev1.PersistentVolume{"reserve": a.reserve, "remove": a.remove,
		"release": a.release} {
		for _, pv := range list {
			say("%s %s", verb, pv.Name)
		}
	}
	if a.spec != nil {
		say("write%s", described(a.spec))
	}
	for is, word := range map[string]bool{"recheck": a.recheck, "retire": a.retire, "over": a.over,
		"count": a.count} {
		if word {
			say("%s", is)
		}
	}
	for _, name := range a.adopt {
		say("adopt %s", name)
	}
	for _, ask := range a.ask {
		say("ask %s", ask)
	}
	for _, told := range a.told {
		say("tell %s", told.reason)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func described(spec *v1alpha1.NodeStorageSpec) (text string) {
	for _, o := range spec.Offers {
		text += " offer:" + string(o.Volume)
		if o.PersistentVolume != name {
			text += ":new"
		}
		if o.Retained {
			text += ":retained"
		}
	}
	for _, d := range spec.DeleteOperations {
		of, _, _ := strings.Cut(string(d.ID), "-")
		text += fmt.Sprintf(" wipe:%s:%s:%s", d.Volume, d.Policy, of)
	}
	return text
}

const (
	mine  = v1alpha1.OperationID(uid + "-1")
	other = v1alpha1.OperationID("absent-1")
)

// TestPlan checks the plan for one disk, in the states of its offer, its PersistentVolume, its deletion and its node.
func TestPlan(t *testing.T) {
	type sights []change
	for name, c := range map[string]struct {
		see  sights
		want string
	}{
		"blank and unused": {sights{found("Available")}, "write offer:disk-1:new"},
		"blank, and given up before": {sights{found("Available"), annotated(v1alpha1.ForgetAnnotation, "disk-1")},
			"tell NotOffered"},
		"blank, and another is given up": {sights{found("Available"), annotated(v1alpha1.ForgetAnnotation, "disk-2")},
			"write offer:disk-1:new"},
		"holds something":               {sights{found("NotBlank")}, "tell NotOffered"},
		"offered no more, as yet":       {sights{found("Offered")}, ""},
		"dirty":                         {sights{found("Dirty")}, "tell NotOffered"},
		"a path that is another disk's": {sights{found("Available", at("/links/disk-2"))}, "tell NotOffered"},
		"a path of the node's own":      {sights{found("Available", at("/dev/sda"))}, "tell NotOffered"},
		"a path that leads elsewhere": {sights{found("Available", at("/links/../links/disk-1"))},
			"tell NotOffered"},
		"too small":                         {sights{found("Available", size("1Ki"))}, "tell NotOffered"},
		"a negative size":                   {sights{found("Available", size("-1Gi"))}, "tell NotOffered"},
		"a mount point that no class takes": {sights{found("Available", mount, at("/mnt/disks/a"))}, "tell NotOffered"},
		"two with one path": {sights{found("Available"),
			found("Available", func(f *v1alpha1.LocalVolumeStatus) { f.Name = "disk-2" })}, "tell NotOffered, tell NotOffered"},
		"at a path at which another is offered": {sights{files, offer(mounted),
			volume("Available", placed), found("Available", second, mount, at(place))},
			"tell NotOffered"},
		"at a path of which there is a PersistentVolume": {sights{files,
			volume("Released", placed, deleted, loose),
			found("Available", second, mount, at(place))}, "tell NotOffered"},
		"at a path at which nothing is offered any more": {sights{files, offer(mounted), proven,
			annotated(v1alpha1.ForgetAnnotation, "disk-1"), found("Available", second, mount, at(place))},
			"write offer:disk-2:new"},
		"bound, and mounted elsewhere": {sights{offer(mounted),
			volume("Bound", placed), found("Offered", mount, at("/mnt/disks/b"))}, "tell Moved"},
		"deleted, and mounted elsewhere": {sights{offer(mounted),
			volume("Released", placed, deleted), proven, found("Offered", mount, at("/mnt/disks/b"))}, "tell Moved"},
		"being wiped, and mounted elsewhere": {sights{offer(mounted),
			volume("Released", placed, deleted), proven, deletion(mine, "Error"),
			found("Offered", mount, at("/mnt/disks/b"))}, "tell Moved, write offer:disk-1"},
		"wiped, and mounted elsewhere": {sights{offer(mounted),
			volume("Released", placed, deleted), deletion(mine, "Complete"),
			found("Offered", mount, at("/mnt/disks/b"))}, "release local-1, tell Moved"},
		"offered and gone, and mounted elsewhere": {sights{offer(mounted), proven,
			found("Offered", mount, at("/mnt/disks/b"))}, "tell Moved"},
		"retained and named to be wiped, and mounted elsewhere": {sights{offer(mounted, keeps, retained),
			proven, found("Offered", mount, at("/mnt/disks/b")), annotated(v1alpha1.ReclaimAnnotation, "disk-1")},
			"tell Moved, tell Retained"},
		"two of one path, and one is released": {sights{
			offer(mounted, retained,
				func(o *v1alpha1.VolumeOffer) { o.Volume, o.PersistentVolume = "disk-2", "local-2" }),
			func(v *view) { v.proven["local-2"] = true },
			offer(mounted), volume("Released", placed, deleted), proven,
			found("Offered", mount, at(place))}, "tell NotWiped, tell Retained"},
		"named to be wiped, where another is offered": {sights{offer(mounted),
			volume("Bound", placed), found("NotBlank", second, mount, at(place)),
			annotated(v1alpha1.ReclaimAnnotation, "disk-2")}, "tell NotOffered, tell NotWiped"},
		"a device in another directory": {sights{offer(func(o *v1alpha1.VolumeOffer) { o.Path = "/old/disk-1" }),
			volume("Released", deleted), proven, found("Offered")}, "write offer:disk-1 wipe:disk-1:zero:0a1b"},
		"of a node with a label of which nobody knows whose it is": {sights{found("Available"), labelled}, "count"},
		"of a node with a label of its own": {sights{found("Available"), labelled, counted()},
			"write offer:disk-1:new"},
		"of a node with the label of another": {sights{found("Available"), labelled, counted("other")},
			"tell HostnameNotOwn"},
		"the same, offered before": {sights{offer(), unmade, found("Offered"), labelled, counted("other")},
			"tell HostnameNotOwn"},
		"two of it, and one notice": {sights{found("Available"), found("Available", second), labelled, counted("other")},
			"tell HostnameNotOwn"},
		"of a node whose label was another": {sights{found("Available"),
			annotated(v1alpha1.HostnameAnnotation, "other")}, "tell HostnameNotOwn"},
		"the node is away":                       {sights{found("Available"), away}, ""},
		"the storage is being deleted":           {sights{found("Available"), ending}, "over"},
		"offered by us, and not looked at since": {sights{offer(), unmade, found("Available")}, ""},
		"offered by us, and found free":          {sights{offer(), unmade, found("Offered")}, "create local-1"},
		"the same, by an old view":               {sights{offer(), unmade, found("Offered"), stale}, "recheck"},
		"offered by us, and in use":              {sights{offer(), unmade, found("InUse")}, "write"},
		"offered by us, and not blank":           {sights{offer(), unmade, found("NotBlank")}, "write"},
		"offered by us, and dirty":               {sights{offer(), unmade, found("Dirty")}, "write"},
		"offered by us, and pulled": {sights{offer(), unmade, found("Available", second)},
			"write offer:disk-1 offer:disk-2:new"},
		"offered by us, and pulled for good": {sights{offer(), unmade, annotated(v1alpha1.ForgetAnnotation, "disk-1")},
			"write"},
		"offered by us, and perhaps made":             {sights{offer(), tried, found("Offered")}, "create local-1"},
		"the same, of the policy Retain":              {sights{offer(keeps), tried}, "create local-1"},
		"the same, and in use":                        {sights{offer(), tried, found("InUse")}, "create local-1"},
		"perhaps made, and the node is away":          {sights{offer(), tried, away}, ""},
		"offered by us, and the node is away":         {sights{offer(), unmade, away, found("InUse")}, ""},
		"perhaps made, and the node is gone":          {sights{offer(), tried, retiring}, "ask local-1"},
		"offered by us, and the node is gone":         {sights{offer(), unmade, retiring}, "ask local-1"},
		"offered by another, and not looked at since": {sights{offer(), proven, found("Available")}, "adopt local-1"},
		"the same, by a view that may be old":         {sights{offer(), proven, found("Available"), stale}, "recheck"},
		"the same of the policy Retain, by another":   {sights{offer(keeps), proven, found("Available")}, "adopt local-1"},
		"offered by another, and in use":              {sights{offer(), proven, found("InUse")}, "write"},
		"offered by another, and not blank":           {sights{offer(keeps), proven, found("NotBlank")}, "write"},
		"offered by another, and cannot be looked at": {sights{offer(), proven, found("Unusable")}, "write"},
		"offered by another, and found free":          {sights{offer(), proven, found("Offered")}, "occupy local-1"},
		"offered, and not in the cache":               {sights{offer()}, "ask local-1"},
		"offered, and gone":                           {sights{offer(), proven}, "occupy local-1"},
		"offered, and gone, by an old view":           {sights{offer(), proven, stale}, "recheck"},
		"offered, gone, and refused": {sights{offer(), proven, refused},
			"write offer:disk-1 wipe:disk-1:zero:absent"},
		"made for nobody a moment ago": {sights{offer(), volume("Available", nobodys)}, ""},
		"made for nobody":              {sights{offer(), volume("Released", nobodys)}, "remove local-1"},
		"made for nobody, and deleted": {sights{offer(), volume("Released", nobodys, deleted), proven},
			"write offer:disk-1 wipe:disk-1:zero:0a1b"},
		"gone, of the policy Retain": {sights{offer(keeps), proven}, "tell Retained, write offer:disk-1:retained"},
		"gone, and retained":         {sights{offer(keeps, retained), proven}, "tell Retained"},
		"gone, and being wiped":      {sights{offer(), proven, deletion(other, "InProgress")}, ""},
		"gone, and the wipe fails":   {sights{offer(), proven, deletion(other, "Error")}, "tell WipeFailed"},
		"gone, and wiped":            {sights{offer(), proven, deletion(other, "Complete")}, "write"},
		"gone, wiped, and found blank already": {sights{offer(), proven, deletion(other, "Complete"), found("Available")},
			"write"},
		"a Complete of another volume": {sights{offer(), proven,
			deletion(other, "Complete", func(s *v1alpha1.DeleteStatus) { s.Volume = "disk-2" })}, ""},
		"a Complete of another id": {sights{offer(), proven,
			deletion(other, "Complete", func(s *v1alpha1.DeleteStatus) { s.ID = "absent-0" })}, ""},
		"available": {sights{offer(), volume("Available")}, ""},
		"bound":     {sights{offer(), volume("Bound")}, ""},
		"bound, and came late": {sights{offer(), volume("Bound"), deletion(other, "Requested")},
			"write offer:disk-1"},
		"available, and came late": {sights{offer(), volume("Available"), deletion(other, "Requested")},
			"remove local-1"},
		"released":                       {sights{offer(), volume("Released")}, "remove local-1"},
		"released, of the policy Retain": {sights{offer(keeps), volume("Released", kept)}, ""},
		"failed":                         {sights{offer(), volume("Failed")}, "remove local-1"},
		"deleted while it was available": {sights{offer(), volume("Available", deleted)}, "reserve local-1"},
		"deleted while it is bound":      {sights{offer(), volume("Bound", deleted)}, ""},
		"deleted, released, unproven":    {sights{offer(), volume("Released", deleted)}, "ask local-1"},
		"deleted and released": {sights{offer(), volume("Released", deleted), proven},
			"write offer:disk-1 wipe:disk-1:zero:0a1b"},
		"deleted, and wiped before that": {sights{offer(), volume("Released", deleted), proven,
			deletion(other, "Complete")}, "write offer:disk-1 wipe:disk-1:zero:0a1b"},
		"deleted, and being wiped": {sights{offer(), volume("Released", deleted), deletion(mine, "InProgress")},
			""},
		"deleted, and wiped": {sights{offer(), volume("Released", deleted), deletion(mine, "Complete")},
			"release local-1"},
		"deleted, and the wipe fails": {sights{offer(), volume("Released", deleted), deletion(mine, "Error")},
			"tell WipeFailed"},
		"deleted by hand, of the policy Retain": {sights{offer(keeps), volume("Released", kept, deleted)},
			"tell Retained, write offer:disk-1:retained"},
		"the same, written": {sights{offer(keeps, retained), volume("Released", kept, deleted)},
			"release local-1, tell Retained"},
		"deleted, and held by others":          {sights{offer(), volume("Released", deleted, loose)}, ""},
		"of another disk, by a foreign hand":   {sights{offer(), volume("Available", ofAnother)}, "tell NotOurs"},
		"without its annotation":               {sights{offer(), volume("Bound", unnamed)}, ""},
		"without its annotation, and released": {sights{offer(), volume("Released", unnamed)}, "remove local-1"},
		"without its annotation, and deleted": {sights{offer(), volume("Released", unnamed, deleted), proven},
			"write offer:disk-1 wipe:disk-1:zero:0a1b"},
		"without its annotation, and wiped": {sights{offer(), volume("Released", unnamed, deleted),
			deletion(mine, "Complete")}, "release local-1"},
		"without an annotation, at another path":  {sights{offer(), volume("Available", unnamed, placed)}, "tell NotOurs"},
		"without an annotation and the finalizer": {sights{offer(), volume("Available", unnamed, loose)}, "tell NotOurs"},
		"retained, and named to be wiped": {sights{offer(keeps, retained), proven,
			annotated(v1alpha1.ReclaimAnnotation, "disk-1")}, "occupy local-1, tell Retained"},
		"retained and named to be wiped, by an old view": {sights{offer(keeps, retained), proven, stale,
			annotated(v1alpha1.ReclaimAnnotation, "disk-1")}, "recheck, tell Retained"},
		"the same, and its object is refused": {sights{offer(keeps, retained), proven, refused,
			annotated(v1alpha1.ReclaimAnnotation, "disk-1")}, "write offer:disk-1:retained wipe:disk-1:zero:absent"},
		"the same, made for nobody": {sights{offer(keeps, retained), volume("Released", kept, nobodys),
			annotated(v1alpha1.ReclaimAnnotation, "disk-1")}, "remove local-1, tell Retained"},
		"the same, made for nobody, and deleted": {sights{offer(keeps, retained),
			volume("Released", kept, nobodys, deleted), proven, annotated(v1alpha1.ReclaimAnnotation, "disk-1")},
			"write offer:disk-1:retained wipe:disk-1:zero:0a1b"},
		"the same, and being wiped": {sights{offer(keeps, retained), volume("Released", kept, nobodys, deleted),
			deletion(mine, "InProgress")}, ""},
		"the same, being wiped, and named again": {sights{offer(keeps, retained),
			volume("Released", kept, nobodys, deleted), deletion(mine, "InProgress"),
			annotated(v1alpha1.ReclaimAnnotation, "disk-1")}, "write offer:disk-1:retained wipe:disk-1:zero:0a1b"},
		"the same, wiped behind its object": {sights{offer(keeps, retained), volume("Released", kept, nobodys, deleted),
			deletion(mine, "Complete")}, "release local-1"},
		"made for nobody, and named no more": {sights{offer(keeps, retained),
			volume("Released", kept, nobodys, deleted)}, "release local-1, tell Retained"},
		"released by a claim of nobody's name, and kept": {sights{offer(keeps), volume("Released", kept, namesakes)}, ""},
		"the same, retained, deleted, and named to be wiped": {sights{offer(keeps, retained),
			volume("Released", kept, namesakes, deleted), annotated(v1alpha1.ReclaimAnnotation, "disk-1")},
			"release local-1, tell Retained"},
		"made for nobody and deleted, and named to be forgotten, too": {sights{offer(keeps, retained),
			volume("Released", kept, nobodys, deleted), proven, found("Offered"),
			annotated(v1alpha1.ReclaimAnnotation, "disk-1"), annotated(v1alpha1.ForgetAnnotation, "disk-1")},
			"release local-1, tell NotReclaimed, tell Retained, write offer:disk-1:retained"},
		"retained, and its object came late": {sights{offer(keeps, retained), volume("Available", kept)},
			"remove local-1, tell Retained"},
		"the same, made by hand for a claim": {sights{offer(keeps, retained), volume("Available", kept, promised)},
			"tell Retained"},
		"retained, named to be wiped, and the node is gone": {sights{offer(keeps, retained), proven, retiring,
			annotated(v1alpha1.ReclaimAnnotation, "disk-1")}, "tell Retained"},
		"retained and never wiped, and named to be wiped": {sights{proven, refused,
			annotated(v1alpha1.ReclaimAnnotation, "disk-1"),
			offer(keeps, retained, func(o *v1alpha1.VolumeOffer) { o.WipePolicy = v1alpha1.WipeNone })},
			"write offer:disk-1:retained wipe:disk-1:zero:absent"},
		"the same, made for nobody and deleted, of no policy": {sights{proven,
			annotated(v1alpha1.ReclaimAnnotation, "disk-1"), volume("Released", kept, nobodys, deleted),
			offer(keeps, retained, func(o *v1alpha1.VolumeOffer) { o.WipePolicy = v1alpha1.WipeNone })},
			"write offer:disk-1:retained wipe:disk-1:zero:0a1b"},
		"named to be wiped, while as much is wiped as can be": {sights{found("Dirty"), full,
			annotated(v1alpha1.ReclaimAnnotation, "disk-1")}, "tell NotOffered"},
		"dirty, and named to be wiped": {sights{found("Dirty"), annotated(v1alpha1.ReclaimAnnotation, "disk-1")},
			"write wipe:disk-1:zero:absent"},
		"not blank, and named to be wiped": {sights{found("NotBlank"), annotated(v1alpha1.ReclaimAnnotation, "disk-1")},
			"write wipe:disk-1:zero:absent"},
		"in use, and named to be wiped": {sights{found("InUse"), annotated(v1alpha1.ReclaimAnnotation, "disk-1")},
			"tell NotOffered, tell NotReclaimed, write"},
		"named to be wiped, and the wipe fails": {sights{found("NotBlank"), deletion(other, "Error")},
			"tell WipeFailed"},
		"named to be wiped, and then to be forgotten": {sights{found("NotBlank"), deletion(other, "Error"),
			annotated(v1alpha1.ForgetAnnotation, "disk-1")}, "write"},
		"named to be both": {sights{found("Dirty"), annotated(v1alpha1.ReclaimAnnotation, "disk-1"),
			annotated(v1alpha1.ForgetAnnotation, "disk-1")}, "tell NotOffered, tell NotReclaimed, write"},
		"retained, named to be wiped, and then to be forgotten": {sights{offer(keeps, retained), proven,
			found("Offered"), deletion(other, "Error"), annotated(v1alpha1.ForgetAnnotation, "disk-1")},
			"tell Retained, write offer:disk-1:retained"},
		"being wiped after its claim, and named to be forgotten": {sights{offer(), volume("Released", deleted),
			found("Offered"), deletion(mine, "InProgress"), annotated(v1alpha1.ForgetAnnotation, "disk-1")}, ""},
		"bound, and named to be wiped": {sights{offer(), volume("Bound"),
			annotated(v1alpha1.ReclaimAnnotation, "disk-1")}, "tell NotReclaimed, write offer:disk-1"},
		"pulled for good, while it is wiped": {sights{offer(), volume("Released", deleted), deletion(mine, "Error"),
			annotated(v1alpha1.ForgetAnnotation, "disk-1")}, "release local-1"},
		"to be forgotten, and there": {sights{found("Offered"), offer(), volume("Bound"),
			annotated(v1alpha1.ForgetAnnotation, "disk-1")}, ""},
		"pulled for good, while it is bound": {sights{offer(), volume("Bound"),
			annotated(v1alpha1.ForgetAnnotation, "disk-1")}, "remove local-1"},
		"pulled, while it is bound":                {sights{ready, offer(), volume("Bound")}, "tell Missing"},
		"pulled, while it is available":            {sights{ready, offer(), volume("Available")}, "tell Missing"},
		"pulled, before it had a PersistentVolume": {sights{ready, offer(), unmade}, "tell Missing"},
		"released, and kept, and pulled":           {sights{ready, offer(keeps), volume("Released", kept)}, "tell Missing"},
		"pulled, and nobody looks for it":          {sights{offer(), volume("Bound")}, ""},
		"there, and bound":                         {sights{ready, found("Offered"), offer(), volume("Bound")}, ""},
		"pulled for good, while it is available": {sights{ready, offer(), volume("Available"),
			annotated(v1alpha1.ForgetAnnotation, "disk-1")}, "remove local-1"},
		"pulled for good, after it was released": {sights{ready, offer(keeps), volume("Released", kept),
			annotated(v1alpha1.ForgetAnnotation, "disk-1")}, "remove local-1"},
		"a PersistentVolume that nobody offers": {sights{volume("Bound")}, "ask local-1"},
		"the same, proven":                      {sights{volume("Bound"), proven}, "write offer:disk-1"},
		"a late one, of a disk that is offered": {sights{offer(func(o *v1alpha1.VolumeOffer) {
			o.PersistentVolume = "local-2"
		}), func(v *view) { v.births["local-2"] = untried }, found("Offered"), volume("Available"), proven},
			"create local-2, remove local-1"},
		"a late one, by a view that may be old": {sights{offer(func(o *v1alpha1.VolumeOffer) {
			o.PersistentVolume = "local-2"
		}), func(v *view) { v.births["local-2"] = untried }, found("Offered"), volume("Available"), proven, stale},
			"recheck"},
		"a late one that is bound": {sights{offer(func(o *v1alpha1.VolumeOffer) {
			o.PersistentVolume = "local-2"
		}), func(v *view) { v.births["local-2"] = untried }, found("Offered"), volume("Bound"), proven},
			"create local-2, tell OfferedTwice"},
		"the node is gone":    {sights{offer(), volume("Bound"), gone}, "retire"},
		"gone, and bound":     {sights{offer(), volume("Bound"), retiring}, "tell NodeGone"},
		"gone, and available": {sights{offer(), volume("Available"), retiring}, "remove local-1"},
		"gone, and released":  {sights{offer(), volume("Released", deleted), retiring}, "release local-1"},
		"gone, bound, and to be forgotten": {sights{offer(), volume("Bound"), retiring,
			annotated(v1alpha1.ForgetAnnotation, "true")}, "remove local-1"},
		"gone, and no PersistentVolume is left": {sights{offer(), proven, retiring}, "write"},
		"the node is gone, and one is retained": {sights{offer(keeps, retained), proven, retiring}, "tell Retained"},
		"the same, with another disk, not back": {sights{offer(keeps, retained), proven, found("Available", second),
			retiring}, "tell Retained"},
		"the same, and the node is back": {sights{offer(keeps, retained), proven, found("Available", second), ending},
			"tell Retained, write offer:disk-1:retained offer:disk-2:new"},
		"the same, and the node is away": {sights{offer(keeps, retained), proven, found("Available", second), ending,
			away}, "tell Retained"},
		"deleted by hand, and the disk is back": {sights{offer(keeps, retained), proven, found("Offered"), ending},
			"tell Retained"},
		"the same, and named to be wiped": {sights{offer(keeps, retained), proven, found("Offered"), ending,
			annotated(v1alpha1.ReclaimAnnotation, "disk-1")}, "occupy local-1, tell Retained"},
		"the same, and wiped": {sights{offer(keeps, retained), proven, found("Offered"), ending,
			deletion(other, "Complete")}, "write"},
		"gone, and nothing is left": {sights{found("Available"), retiring}, "over"},
		"to be forgotten, and the node is there": {sights{offer(), volume("Bound"),
			annotated(v1alpha1.ForgetAnnotation, "true")}, ""},
		"deleted by hand, with a bound volume": {sights{offer(), volume("Bound"), ending}, "over"},
		"deleted by hand, while one is wiped": {sights{offer(), volume("Released", deleted), deletion(mine, "InProgress"),
			ending}, ""},
	} {
		if got := plan(viewOf(c.see...)).described(); got != c.want {
			t.Errorf("%s: the plan is %q, want %q", name, got, c.want)
		}
	}
}

// TestNotOffered checks that an event says why a disk is not offered, once for each reason.
func TestNotOffered(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.used = "disk-1"
	for range 3 {
		s.settle(0, 3)
		s.report()
	}
	if told := s.told(); strings.Count(told, "NotOffered") != 1 || !strings.Contains(told, "disk-1") ||
		!strings.Contains(told, "InUse") {
		t.Errorf("people were told %q, want once that disk-1 is InUse", told)
	}
	s.used = ""
	s.report()
	s.settle(0, 3)
	if told := s.told(); told != "" || len(s.storage().Spec.Offers) != disks {
		t.Errorf("once it is free people were told %q, and offered are %+v", told, s.storage().Spec.Offers)
	}
	for _, c := range []struct {
		see  change
		says string
	}{
		{found("NotBlank", func(f *v1alpha1.LocalVolumeStatus) { f.Device, f.Message = "/dev/sda", "it holds ext4" }),
			"volume disk-1 (/dev/sda) is not offered, since it is NotBlank: it holds ext4"},
		{found("Unusable"), "the worker does not say why"},
		{found("Available", mount, at("/mnt/disks/a")), "no StorageClass of found disks takes it (Filesystem, 1Gi, node)"},
	} {
		told := plan(viewOf(c.see)).told
		if len(told) != 1 || told[0].reason != "NotOffered" || !strings.Contains(told[0].message, c.says) {
			t.Errorf("told is %+v, want %q", told, c.says)
		}
	}
}

// TestOthersVolumes checks that a PersistentVolume is part of a node's plan only if the master created it: the static
// provisioner of SIG Storage creates similar ones, under its own name.
func TestOthersVolumes(t *testing.T) {
	pv := persistentVolume("node", "node", viewOf(offer()).storage.Spec.Offers[0])
	if nodes := nodeOf(pv); !slices.Equal(nodes, []string{"node"}) {
		t.Errorf("its own is of the nodes %q", nodes)
	}
	pv.Annotations[storage.AnnDynamicallyProvisioned] = "local-volume-provisioner-node-0a1b"
	if nodes := nodeOf(pv); len(nodes) > 0 {
		t.Errorf("one of another provisioner is of the nodes %q", nodes)
	}
}

// TestConcerned checks which object gets the event about a volume's problem: the bound claim, if there is one.
func TestConcerned(t *testing.T) {
	for phase, want := range map[corev1.PersistentVolumePhase]string{
		corev1.VolumeBound: "claim", corev1.VolumeAvailable: name, corev1.VolumeReleased: name,
	} {
		told := plan(viewOf(ready, offer(keeps), volume(phase, kept))).told
		if len(told) != 1 || told[0].about.GetName() != want || !strings.Contains(told[0].message, string(disk)) {
			t.Errorf("%s: told is %+v, want an event on %s", phase, told, want)
		}
	}
}

// TestRetainIsRemembered checks that nothing is wiped if an administrator changes the policy of a PersistentVolume to
// Retain and the object is then removed by force. If the policy changes to Delete, the object decides.
func TestRetainIsRemembered(t *testing.T) {
	for name, see := range map[string][]change{
		"bound":   {offer(), volume("Bound", kept)},
		"deleted": {offer(), volume("Released", kept, deleted)},
	} {
		a := plan(viewOf(see...))
		if a.spec == nil || a.spec.Offers[0].ReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			t.Fatalf("%s: the spec becomes %+v, want the offer of the policy Retain", name, a.spec)
		}
		removed := plan(viewOf(func(v *view) { v.storage.Spec = *a.spec }, proven))
		if removed.spec != nil && len(removed.spec.DeleteOperations) > 0 {
			t.Errorf("%s, and removed by force: %+v is to be wiped", name, removed.spec.DeleteOperations)
		}
	}
	if got := plan(viewOf(offer(keeps), volume("Released"))).described(); got != "remove "+name {
		t.Errorf("of a PersistentVolume whose policy became Delete the plan is %q", got)
	}
}
