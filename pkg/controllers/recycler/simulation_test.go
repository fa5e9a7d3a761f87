package recycler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/localvolume"
	"github.com/stowage-csi/stowage/pkg/controllers/volumeworker"
	"github.com/stowage-csi/stowage/pkg/uses"
)

var errCut = errors.New("the connection broke")

const (
	ownNamespace = "recycler"
	protection   = "kubernetes.io/pvc-protection"
)

// simulation has a volume, its tenants, a model of Kubernetes and of two nodes, and two recyclers whose writes may be
// lost or late.
type simulation struct {
	*testing.T
	*rand.Rand
	api     client.WithWatch
	leaders [2]*reconciler
	clock   time.Time
	faults  bool
	late    []func() // writes of leaders that pause in the middle of one
	serial  int
	history []string

	attempts int               // of the recyclers, after which the volume is Failed
	written  map[string]*write // the first write of each form

	attaches    bool      // the driver has an attach step
	answers     bool      // the node says whether it uses the volume, and stops pods whenever it likes
	isDown      bool      // the tenant's node is not reachable: its pods run on, unreported
	isOtherDown bool      // the same for the scrubs' node
	data        types.UID // the tenant's claim whose data are in the volume
	wasReleased bool      // the volume was released once: from then on it is a recycled one
	// the tenant's claim of the pod that has the volume mounted, whether its object exists or not
	mounted types.UID
	by      types.UID // that pod
	gone    time.Time // since when the kubelet knows that it must stop the pod
	scrubs  string    // the name of the scrub pod that runs on the node
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	// A seed reproduces a run.
	s := &simulation{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), clock: time.Unix(0, 0), faults: true,
		attempts: 50, written: map[string]*write{}}
	s.attaches = s.IntN(2) == 0
	s.answers = !s.attaches && s.IntN(2) == 0
	scheme := runtime.NewScheme()
	s.must(errors.Join(corev1.AddToScheme(scheme), storagev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	v := newVolume()
	v.Status.Phase = corev1.VolumeAvailable
	node, second := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "driver"},
		Spec: storagev1.CSIDriverSpec{AttachRequired: &s.attaches}}
	order := &v1alpha1.LocalVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "local", Name: "handle"}}
	order.Spec.Node = "node"
	s.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(v, node, second, driver, order).
		WithStatusSubresource(&corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{}, &corev1.Pod{},
			&corev1.Node{}, order).
		WithIndex(order, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	for i := range s.leaders {
		s.start(i)
	}
	return s
}

// disturbed returns a client whose writes may be lost or late.
func (s *simulation) disturbed() client.WithWatch {
	return interceptor.NewClient(s.api, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return s.disturb(func() error { return s.create(o) })
		},
		Update: func(_ context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return s.disturb(func() error { return c.Update(context.Background(), o, options...) })
		},
		SubResourceUpdate: func(
			_ context.Context, c client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
			return s.disturb(func() error { return c.Status().Update(context.Background(), o) })
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			return s.disturb(func() error { return s.remove(o) })
		},
	})
}

// start restarts a recycler.
func (s *simulation) start(i int) {
	s.Helper()
	counts, err := newMetrics(prometheus.NewRegistry())
	s.must(err)
	s.leaders[i] = &reconciler{
		Options: Options{Drivers: []string{"driver"}, Namespace: ownNamespace, Image: "i", Delay: time.Minute,
			Deadline: time.Hour, Attempts: s.attempts},
		cache: s.api, live: s.api, write: s.recorded(s.disturbed()), events: events.NewFakeRecorder(100000),
		memory: newMemory(func() time.Time { return s.clock }), metrics: counts,
		newName: func() string {
			s.serial++
			return fmt.Sprint("scrub-", s.serial)
		},
	}
	if s.answers {
		s.leaders[i].LocalDriver = "driver"
	}
}

// localDriver is the driver of the volume's node.
type localDriver struct {
	volumeworker.Driver
	*simulation
}

// Use says whether a pod has the volume mounted.
func (s localDriver) Use(context.Context, string) (uses.Use, error) {
	switch {
	case s.faults && s.IntN(4) == 0:
		return uses.Use{}, errCut
	case s.mounted != "":
		if !slices.ContainsFunc(s.pods(), func(p corev1.Pod) bool { return p.UID == s.by }) {
			s.note("the node reports a writer without a pod")
		}
		return uses.Use{InUse: true, Says: "published for " + string(s.mounted)}, nil
	case s.scrubs != "":
		return uses.Use{InUse: true, Says: "published for " + s.scrubs}, nil
	}
	return uses.Use{}, nil
}

// report lets the master of local volumes pass a question on, and the worker of the node answer it.
func (s *simulation) report() {
	s.Helper()
	questions := localvolume.NewQuestions("local", "driver", s.api, s.api, s.disturbed())
	_, err := questions.Reconcile(s.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "v"}})
	if s.isDown || s.faults && s.IntN(3) == 0 {
		return
	}
	worker := volumeworker.NewUseReporter(
		volumeworker.Options{Node: "node", Driver: localDriver{simulation: s}, Timeout: time.Hour}, s.api, s.disturbed())
	_, failed := worker.Reconcile(s.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "local", Name: "handle"}})
	if err := errors.Join(err, failed); err != nil && !errors.Is(err, errCut) && !apierrors.IsConflict(err) {
		s.violated("the report of the node: %v", err)
	}
}

// disturb makes a write, loses it, loses its answer, or delays it.
func (s *simulation) disturb(write func() error) error {
	if !s.faults {
		return write()
	}
	switch s.IntN(12) {
	case 0:
		return errCut
	case 1:
		return errors.Join(write(), errCut)
	case 2:
		s.late = append(s.late, func() {
			err := write()
			s.note("a late write: %v", err)
		})
		return errCut
	}
	return write()
}

func (s *simulation) create(o client.Object) error {
	s.serial++
	o.SetUID(types.UID(fmt.Sprint("uid-", s.serial)))
	if claim, is := o.(*corev1.PersistentVolumeClaim); is {
		claim.Finalizers = []string{protection}
		claim.Status.Phase = corev1.ClaimPending
	}
	o.SetCreationTimestamp(metav1.NewTime(s.clock))
	return s.api.Create(context.Background(), o)
}

// remove deletes the object if its UID matches.
func (s *simulation) remove(o client.Object) error {
	now, _ := o.DeepCopyObject().(client.Object)
	if err := s.api.Get(context.Background(), client.ObjectKeyFromObject(o), now); err != nil {
		return err
	}
	if now.GetUID() != o.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("precondition"))
	}
	return s.api.Delete(context.Background(), now)
}

func (s *simulation) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *simulation) note(format string, all ...any) {
	s.history = append(s.history, fmt.Sprintf(format, all...))
}

// violated fails the test and logs the history.
func (s *simulation) violated(format string, all ...any) {
	s.Helper()
	for _, line := range s.history {
		s.Log(line)
	}
	s.Fatalf("VIOLATION: "+format, all...)
}

func (s *simulation) volume() *corev1.PersistentVolume {
	s.Helper()
	v := &corev1.PersistentVolume{}
	s.must(s.api.Get(s.Context(), client.ObjectKey{Name: "v"}, v))
	return v
}

func (s *simulation) claims() []corev1.PersistentVolumeClaim {
	s.Helper()
	var list corev1.PersistentVolumeClaimList
	s.must(s.api.List(s.Context(), &list))
	return list.Items
}

func (s *simulation) pods() []corev1.Pod {
	s.Helper()
	var list corev1.PodList
	s.must(s.api.List(s.Context(), &list))
	return list.Items
}

// recycle lets a recycler take steps until it waits or fails.
func (s *simulation) recycle(i int) {
	s.Helper()
	for range 3 {
		result, err := s.leaders[i].Reconcile(s.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "v"}})
		if err != nil && !errors.Is(err, errCut) {
			s.violated("leader %d: %v", i, err)
		}
		if err != nil && s.IntN(2) == 0 {
			s.start(i)
		}
		if err != nil || result.RequeueAfter != soon {
			break
		}
		v := s.volume()
		s.note("leader %d: %s %v", i, v.Status.Phase, v.Annotations[v1alpha1.RecyclingAnnotation])
	}
	if s.IntN(10) == 0 || !s.faults {
		if err := s.leaders[i].sweep(s.Context()); err != nil && !errors.Is(err, errCut) && !apierrors.IsConflict(err) {
			s.violated("the sweep of leader %d: %v", i, err)
		}
	}
}

// tenant creates a claim and a pod, or deletes them, sometimes by force.
func (s *simulation) tenant() {
	s.Helper()
	for _, c := range s.claims() {
		if c.Namespace != "tenant" {
			continue
		}
		for _, p := range s.pods() {
			if p.Namespace == "tenant" && s.IntN(3) == 0 {
				s.note("the pod of %s is deleted by force", c.UID)
				s.must(s.remove(&p)) // The kubelet has not stopped it yet.
			}
		}
		if c.DeletionTimestamp == nil && s.IntN(2) == 0 {
			s.note("the claim %s is deleted", c.UID)
			s.must(s.remove(&c))
		}
		return
	}
	if !s.faults {
		return
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "claim"}}
	switch isUnbound := s.isUnbound(); {
	case isUnbound && s.IntN(2) == 0 && !s.restores(claim), !isUnbound && s.IntN(4) > 0:
		return
	}
	s.must(s.create(claim))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "pod"}}
	pod.Spec.NodeName, pod.Spec.Volumes = "node", claimVolume("claim")
	if err := s.create(pod); !apierrors.IsAlreadyExists(err) {
		s.must(err)
	}
}

// isUnbound reports whether any claim can be bound to the volume.
func (s *simulation) isUnbound() bool {
	s.Helper()
	v := s.volume()
	return v.Spec.ClaimRef == nil && v.Status.Phase == corev1.VolumeAvailable
}

// restores gives a claim a snapshot as its source, unless the policy refuses it because the recycler has noted the
// class. It is called only while the volume is unbound: otherwise another volume is created for such a claim.
func (s *simulation) restores(claim *corev1.PersistentVolumeClaim) bool {
	s.Helper()
	list, err := find(s.Context(), s.api, ownNamespace, v1alpha1.RecycledClasses, &corev1.ServiceAccount{})
	s.must(err)
	if list != nil && slices.Contains(listedClasses(list), classKey(s.volume())) {
		s.note("a restore is refused")
		return false
	}
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "backup"}
	return true
}

// bind acts as kube-controller-manager: it binds, writes phases, and releases deleted claims that no pod uses.
func (s *simulation) bind() {
	s.Helper()
	v := s.volume()
	claims := s.claims()
	s.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
	for i := range claims {
		c := &claims[i]
		isFree := v.Spec.ClaimRef == nil && v.Status.Phase == corev1.VolumeAvailable && c.DeletionTimestamp == nil
		if isFree && (c.Spec.VolumeName == "" || c.Spec.VolumeName == "v") {
			s.note("the volume is bound to %s/%s (%s)", c.Namespace, c.Name, c.UID)
			if c.Namespace == "tenant" && s.data != "" {
				s.violated("the volume is bound to %s with the data of %s", c.UID, s.data)
			}
			if c.Spec.DataSource != nil && s.wasReleased {
				s.violated("a restore, %s, is bound to a volume that was recycled", c.UID)
			}
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID}
			s.must(s.api.Update(s.Context(), v))
		}
		s.letGo(c)
	}
	phase := s.phase(v)
	s.wasReleased = s.wasReleased || phase == corev1.VolumeReleased
	if phase != v.Status.Phase && (phase != corev1.VolumeReleased || v.Status.Phase != corev1.VolumeFailed) {
		v.Status.Phase = phase
		s.must(s.api.Status().Update(s.Context(), v))
	}
}

// letGo removes the protection of a claim that is being deleted and that no pod uses.
func (s *simulation) letGo(c *corev1.PersistentVolumeClaim) {
	s.Helper()
	uses := func(p corev1.Pod) bool {
		isOver := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		return p.Namespace == c.Namespace && mounts(&p, c.Name) && !isOver
	}
	if c.DeletionTimestamp != nil && !slices.ContainsFunc(s.pods(), uses) &&
		controllerutil.RemoveFinalizer(c, protection) {
		s.must(s.api.Update(s.Context(), c))
	}
}

func (s *simulation) phase(v *corev1.PersistentVolume) corev1.PersistentVolumePhase {
	s.Helper()
	if v.Spec.ClaimRef == nil {
		return corev1.VolumeAvailable
	}
	for _, c := range s.claims() {
		if c.UID == v.Spec.ClaimRef.UID {
			if c.Status.Phase != corev1.ClaimBound {
				c.Status.Phase = corev1.ClaimBound
				s.must(s.api.Status().Update(s.Context(), &c))
			}
			return corev1.VolumeBound
		}
	}
	return corev1.VolumeReleased
}

// tenantsKubelet starts and stops the tenant's pods. While its node is not reachable, they run on.
func (s *simulation) tenantsKubelet() {
	s.Helper()
	if s.mounted != "" {
		s.data = s.mounted
	}
	if s.isDown {
		return
	}
	s.stop()
	for _, p := range s.pods() {
		if p.Namespace == "tenant" {
			s.runTenant(&p)
		}
	}
	s.attach()
}

// scrubsKubelet does the same for the scrub pods on another node.
func (s *simulation) scrubsKubelet() {
	s.Helper()
	s.work()
	if s.isOtherDown {
		return
	}
	pods := s.pods()
	for i := range pods {
		p := &pods[i]
		switch {
		case p.Namespace == "tenant":
		case p.DeletionTimestamp != nil && s.scrubs != p.Name && p.Status.Phase == "":
			s.end(p, corev1.PodFailed)
		case p.DeletionTimestamp == nil && p.Status.Phase == "":
			s.runScrub(p)
		}
	}
	s.attach()
}

// stop stops the tenant's pod if its object is gone. A container may take long to end: it outlives its pod's object.
func (s *simulation) stop() {
	s.Helper()
	if s.answers && s.faults && s.IntN(20) > 0 {
		return
	}
	if s.mounted != "" && !slices.ContainsFunc(s.pods(), func(p corev1.Pod) bool { return p.UID == s.by }) {
		s.note("the kubelet unmounts the volume of %s", s.mounted)
		s.mounted = ""
	}
}

// stopInTime makes a reachable kubelet stop pods within less than the recycler's delay. Without an attach step nothing
// else shows that a pod runs.
func (s *simulation) stopInTime() {
	s.Helper()
	switch {
	case s.attaches || s.answers:
	case s.isDown || s.mounted == "" || slices.ContainsFunc(s.pods(), func(p corev1.Pod) bool { return p.UID == s.by }):
		s.gone = time.Time{}
	case s.gone.IsZero():
		s.gone = s.clock
	case s.clock.Sub(s.gone) > 50*time.Second:
		s.stop()
	}
}

// runTenant lets a tenant's pod mount the volume and write.
func (s *simulation) runTenant(p *corev1.Pod) {
	s.Helper()
	ref := s.volume().Spec.ClaimRef
	if ref == nil || ref.Namespace != "tenant" {
		return
	}
	for _, c := range s.claims() {
		if c.UID == ref.UID && c.DeletionTimestamp == nil && s.mounted == "" {
			s.mounted, s.data, s.by = c.UID, c.UID, p.UID
		}
	}
}

// runScrub starts a scrub if the claim of its pod is bound.
func (s *simulation) runScrub(p *corev1.Pod) {
	s.Helper()
	for _, c := range s.claims() {
		ref := s.volume().Spec.ClaimRef
		if c.Namespace != ownNamespace || c.Name != p.Name || c.DeletionTimestamp != nil || ref == nil || ref.UID != c.UID ||
			s.scrubs != "" {
			continue
		}
		p.Spec.NodeName = "other"
		s.must(s.api.Update(s.Context(), p))
		s.note("%s scrubs", p.Name)
		s.scrubs = p.Name
	}
}

// work continues a scrub until it ends. While its kubelet is not reachable, the scrub runs on, and its end is not
// reported.
func (s *simulation) work() {
	s.Helper()
	if s.scrubs == "" {
		return
	}
	ref := s.volume().Spec.ClaimRef
	switch {
	case s.mounted != "":
		s.violated("the volume is scrubbed while %s has it mounted", s.mounted)
	case ref == nil || ref.Namespace != ownNamespace || ref.Name != s.scrubs:
		s.violated("%s scrubs, and the volume names %v", s.scrubs, ref)
	}
	if s.isOtherDown || s.IntN(2) == 0 {
		return
	}
	p, err := find(s.Context(), s.api, ownNamespace, s.scrubs, &corev1.Pod{})
	s.must(err)
	s.scrubs = ""
	switch {
	case p == nil:
	case p.DeletionTimestamp != nil, s.faults && s.IntN(3) == 0:
		s.end(p, corev1.PodFailed)
	default:
		s.data = ""
		s.end(p, corev1.PodSucceeded)
	}
}

// end writes the kubelet's last report about a scrub pod.
func (s *simulation) end(p *corev1.Pod, phase corev1.PodPhase) {
	s.Helper()
	s.note("%s is %s", p.Name, phase)
	p.Status.Phase = phase
	s.must(s.api.Status().Update(s.Context(), p))
}

// attach keeps a VolumeAttachment while the volume is mounted.
func (s *simulation) attach() {
	s.Helper()
	name, key := "v", client.ObjectKey{Name: "attachment"}
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: key.Name}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "driver", NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name},
	}}
	isThere := s.api.Get(s.Context(), key, &storagev1.VolumeAttachment{}) == nil
	switch isUsed := s.attaches && (s.mounted != "" || s.scrubs != ""); {
	case isUsed && !isThere:
		s.must(s.api.Create(s.Context(), a))
	case !isUsed && isThere:
		s.must(s.api.Delete(s.Context(), a))
	}
}

// touch makes a node reachable or not.
func (s *simulation) touch(name string, isDown *bool, to bool) {
	s.Helper()
	*isDown = to
	node := &corev1.Node{}
	s.must(s.api.Get(s.Context(), client.ObjectKey{Name: name}, node))
	status := corev1.ConditionTrue
	if to {
		status = corev1.ConditionUnknown
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	s.must(s.api.Status().Update(s.Context(), node))
}

// meddle deletes the recycler's claims and pods by force.
func (s *simulation) meddle() {
	s.Helper()
	for _, p := range s.pods() {
		if p.Namespace == ownNamespace && p.DeletionTimestamp == nil && s.IntN(2) == 0 {
			s.note("somebody deletes %s by force", p.Name)
			s.must(s.remove(&p))
		}
	}
	for _, c := range s.claims() {
		if c.Namespace == ownNamespace && c.DeletionTimestamp == nil && s.IntN(3) == 0 {
			s.note("somebody deletes the claim %s", c.Name)
			s.must(s.remove(&c))
		}
	}
}

// handOver lets a person give a released volume, with its data, to the next tenant while no recycler runs, until that
// tenant has released it as well.
func (s *simulation) handOver() {
	s.Helper()
	v := s.volume()
	ref := v.Spec.ClaimRef
	if v.Status.Phase != corev1.VolumeReleased || ref == nil || ref.Namespace != "tenant" || s.mounted != "" {
		return
	}
	s.note("a person clears claimRef")
	v.Spec.ClaimRef = nil
	s.must(s.api.Update(s.Context(), v))
	s.data, s.wasReleased = "", false
	for range 40 {
		s.clock = s.clock.Add(time.Second)
		s.stopInTime()
		s.bind()
		if s.volume().Status.Phase == corev1.VolumeReleased {
			return
		}
		s.tenantsKubelet()
		s.tenant()
	}
}

// happen runs one random event.
func (s *simulation) happen() {
	s.Helper()
	s.clock = s.clock.Add(time.Duration(s.IntN(40)) * time.Second)
	s.stopInTime()
	switch n := s.IntN(46); {
	case n < 14:
		s.recycle(n % 2)
	case n < 22:
		s.bind()
	case n < 26:
		s.tenantsKubelet()
	case n < 30:
		s.scrubsKubelet()
	case n < 34:
		s.tenant()
	case n < 35:
		s.meddle()
	case n < 36:
		s.touch("node", &s.isDown, s.IntN(2) == 0)
	case n < 37:
		s.touch("other", &s.isOtherDown, s.IntN(2) == 0)
	case n < 41:
		s.report()
	case n < 43:
		s.handOver()
	case len(s.late) > 0:
		i := s.IntN(len(s.late))
		write := s.late[i]
		s.late = slices.Delete(s.late, i, i+1)
		write()
	}
}

// rest lets all work end, and checks the final state.
func (s *simulation) rest() {
	s.Helper()
	for _, write := range s.late {
		write()
	}
	s.faults, s.late = false, nil
	s.touch("node", &s.isDown, false)
	s.touch("other", &s.isOtherDown, false)
	for range 60 {
		s.clock = s.clock.Add(time.Hour / 2)
		s.tenant()
		s.tenantsKubelet()
		s.scrubsKubelet()
		s.bind()
		s.report()
		s.recycle(0)
	}
	v := s.volume()
	_, isBegun := v.Annotations[v1alpha1.RecyclingAnnotation]
	if v.Status.Phase != corev1.VolumeAvailable || v.Spec.ClaimRef != nil || isBegun || s.data != "" {
		s.violated("at rest the volume is %s, names %v, bears %v, and has data of %q", v.Status.Phase, v.Spec.ClaimRef,
			v.Annotations, s.data)
	}
	if len(s.pods()) > 0 || len(s.claims()) > 0 {
		s.violated("%d pods and %d claims are left", len(s.pods()), len(s.claims()))
	}
}

// TestSimulation runs two recyclers whose writes may be lost or late, together with tenants, nodes that are sometimes
// not reachable, writers that outlive their pods' objects if the node reports them, and a person who deletes the
// recyclers' objects, or gives a released volume to the next tenant. No volume is scrubbed while it is bound or
// mounted, none is bound with another's data, no recycled volume is bound to a claim with a data source, and nothing is
// left over.
func TestSimulation(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		s := newSimulation(t, seed)
		s.touch("node", &s.isDown, false)
		s.touch("other", &s.isOtherDown, false)
		for range 300 {
			s.happen()
		}
		s.rest()
		for _, line := range s.history {
			for _, word := range []string{"is bound to tenant", "is bound to recycler", "scrubs", "Succeeded", "is Failed",
				"a late write", "by force", "a restore is refused", "a writer without a pod",
				"clears claimRef"} {
				if strings.Contains(line, word) {
					seen[word]++
				}
			}
		}
	}
	if seen["is bound to tenant"] < 30 || seen["Succeeded"] < 30 || seen["is Failed"] < 15 || seen["a late write"] < 20 ||
		seen["a restore is refused"] < 15 || seen["a writer without a pod"] < 5 || seen["clears claimRef"] < 10 {
		t.Errorf("too little happens: %v", seen)
	}
}

func newVolume() *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "v-uid",
		Annotations: map[string]string{v1alpha1.RecycleAnnotation: "true"}}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: "handle"}
	v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return v
}

func claimVolume(claim string) []corev1.Volume {
	return []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}
}
