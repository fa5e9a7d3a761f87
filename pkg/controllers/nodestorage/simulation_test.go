package nodestorage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

var errCut = errors.New("the connection broke")

// simulation has a node with disks, a worker, Kubernetes' controller, people, and two masters whose caches lag.
type simulation struct {
	*testing.T
	*rand.Rand
	api     client.WithWatch
	masters [2]*reconciler
	caches  [2]*late
	cuts    int // one write in cuts loses its answer
	writes  int

	dirty  map[v1alpha1.VolumeName]string // the PersistentVolume by which a volume was written to
	wiped  map[v1alpha1.OperationID]bool
	offers map[v1alpha1.VolumeName]map[string]bool // known to the worker; true once they were wiped
	acked  map[string]bool                         // offers whose volume it has reported as free
	used   v1alpha1.VolumeName                     // a volume with another user
	moved  v1alpha1.VolumeName                     // a volume that the worker reports at a path that is not allowed
	held   *v1alpha1.NodeStorage                   // a report under way
}

// late is a cache with an earlier state.
type late struct {
	client.Reader
	storage *v1alpha1.NodeStorage
	volumes corev1.PersistentVolumeList
}

func (l *late) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	switch o := o.(type) {
	case *v1alpha1.NodeStorage:
		if l.storage == nil {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		l.storage.DeepCopyInto(o)
		return nil
	case *corev1.PersistentVolume:
		for i := range l.volumes.Items {
			if l.volumes.Items[i].Name == key.Name {
				l.volumes.Items[i].DeepCopyInto(o)
				return nil
			}
		}
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return l.Reader.Get(ctx, key, o, options...)
}

func (l *late) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if all, ok := list.(*corev1.PersistentVolumeList); ok {
		l.volumes.DeepCopyInto(all)
		return nil
	}
	return l.Reader.List(ctx, list, options...)
}

const disks = 3

func newSimulation(t *testing.T, seed uint64, cuts int) *simulation {
	t.Helper()
	s := &simulation{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), cuts: cuts, dirty: map[v1alpha1.VolumeName]string{},
		wiped: map[v1alpha1.OperationID]bool{}, offers: map[v1alpha1.VolumeName]map[string]bool{},
		acked: map[string]bool{}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, storagev1.AddToScheme, v1alpha1.AddToScheme} {
		s.must(add(scheme))
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disks",
		Labels: map[string]string{v1alpha1.LocalVolumeProvisioner: "true"}},
		Provisioner: noProvisioner, Parameters: map[string]string{"volumeMode": "Block"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	s.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(class,
		node).WithStatusSubresource(&v1alpha1.NodeStorage{}, &corev1.PersistentVolume{}).
		WithIndex(&corev1.PersistentVolume{}, byNode, nodeOf).Build()
	for i := range s.masters {
		s.caches[i] = &late{Reader: s.api}
		s.start(i)
	}
	return s
}

// start restarts a master.
func (s *simulation) start(i int) {
	own := interceptor.NewClient(s.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			o.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", s.writes)))
			return s.cut(c.Create(ctx, o, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return s.cut(c.Update(ctx, o, options...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			now := o.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
				return err
			}
			if now.GetResourceVersion() != o.GetResourceVersion() {
				return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("precondition"))
			}
			return s.cut(c.Delete(ctx, now))
		},
	})
	o := Options{Namespace: "ns", Rules: Rules{Devices: "/links"}, Nodes: labels.Everything(), NodeGoneAfter: time.Hour,
		Workers: 1}
	s.masters[i] = newReconciler(o, s.caches[i], s.api, own, events.NewFakeRecorder(10000))
}

// cut sometimes loses the answer of a write.
func (s *simulation) cut(err error) error {
	if err == nil {
		s.writes++
	}
	if err == nil && s.cuts > 0 && s.IntN(s.cuts) == 0 {
		return errCut
	}
	return err
}

func (s *simulation) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// see updates one half of a cache, or both.
func (s *simulation) see(i, half int) {
	if half != 1 {
		s.caches[i].storage = s.storage()
	}
	if half != 0 {
		s.caches[i].volumes = corev1.PersistentVolumeList{}
		s.must(s.api.List(s.Context(), &s.caches[i].volumes))
	}
}

func (s *simulation) storage() *v1alpha1.NodeStorage {
	storage := &v1alpha1.NodeStorage{}
	err := s.api.Get(s.Context(), client.ObjectKey{Namespace: "ns", Name: "node"}, storage)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return storage
}

// manage reconciles with a master. If that fails, the master may restart.
func (s *simulation) manage(i int) {
	_, err := s.masters[i].Reconcile(s.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "node"}})
	if err != nil && s.IntN(2) == 0 {
		s.start(i)
	}
	s.check()
}

// work lets the worker read its object, or send the report about the object that it read before.
func (s *simulation) work() {
	if s.held != nil {
		err := s.api.Status().Update(s.Context(), s.held)
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			s.must(err)
		}
		s.held = nil
		return
	}
	storage := s.storage()
	if storage == nil {
		return
	}
	for _, o := range storage.Spec.Offers {
		s.hear(o)
	}
	storage.Status = v1alpha1.NodeStorageStatus{}
	for _, r := range storage.Spec.DeleteOperations {
		storage.Status.DeleteOperations = append(storage.Status.DeleteOperations,
			v1alpha1.DeleteStatus{ID: r.ID, Volume: r.Volume, State: s.wipe(r)})
	}
	for i := range disks {
		storage.Status.LocalVolumes = append(storage.Status.LocalVolumes,
			s.disk(storage, v1alpha1.VolumeName(fmt.Sprintf("disk-%d", i))))
	}
	s.held = storage
}

// hear notes an offer. It acknowledges an offer that was noted before, if its volume is free.
func (s *simulation) hear(o v1alpha1.VolumeOffer) {
	if s.offers[o.Volume] == nil {
		s.offers[o.Volume] = map[string]bool{}
	}
	_, isNoted := s.offers[o.Volume][o.PersistentVolume]
	if !isNoted {
		s.offers[o.Volume][o.PersistentVolume] = false
	} else if s.used != o.Volume && !s.isDirty(o.Volume, o.PersistentVolume) {
		s.acked[o.PersistentVolume] = true
	}
}

// isDirty reports whether a volume was offered by another PersistentVolume and has not been wiped since.
func (s *simulation) isDirty(volume v1alpha1.VolumeName, but string) bool {
	for name, isWiped := range s.offers[volume] {
		if name != but && !isWiped {
			return true
		}
	}
	return false
}

func (s *simulation) wipe(r v1alpha1.DeleteRequest) v1alpha1.DeleteState {
	if s.wiped[r.ID] {
		return v1alpha1.DeleteComplete
	}
	if s.IntN(2) == 0 {
		return v1alpha1.DeleteInProgress
	}
	for _, pv := range s.all() {
		if pv.Annotations[v1alpha1.LocalVolumeAnnotation] == string(r.Volume) && isBound(&pv) &&
			pv.Spec.ClaimRef.Name != nobody {
			s.Fatalf("VIOLATION: %s is bound, and %s is to be wiped", pv.Name, r.Volume)
		}
	}
	s.wiped[r.ID] = true
	delete(s.dirty, r.Volume)
	for name := range s.offers[r.Volume] {
		s.offers[r.Volume][name] = true
	}
	return v1alpha1.DeleteComplete
}

func (s *simulation) disk(storage *v1alpha1.NodeStorage, name v1alpha1.VolumeName) v1alpha1.LocalVolumeStatus {
	v := v1alpha1.LocalVolumeStatus{Name: name, Path: "/links/" + string(name), Identity: string(name),
		Capacity:   "1Gi",
		VolumeMode: corev1.PersistentVolumeBlock, State: v1alpha1.VolumeAvailable}
	if name == s.moved {
		v.Path = "/elsewhere"
	}
	offered := ""
	for _, o := range storage.Spec.Offers {
		if o.Volume == name {
			offered = o.PersistentVolume
		}
	}
	switch {
	case s.acked[offered]:
		v.State = v1alpha1.VolumeOffered
	case s.isDirty(name, offered):
		v.State = v1alpha1.VolumeDirty
	case s.used == name:
		v.State = v1alpha1.VolumeInUse
	}
	return v
}

func (s *simulation) all() []corev1.PersistentVolume {
	var list corev1.PersistentVolumeList
	s.must(s.api.List(s.Context(), &list))
	return list.Items
}

// happen runs Kubernetes and, unless quiet, claims and an operator.
func (s *simulation) happen(quiet bool) {
	for _, pv := range s.all() {
		volume := v1alpha1.VolumeName(pv.Annotations[v1alpha1.LocalVolumeAnnotation])
		switch n := s.IntN(40); {
		case pv.Status.Phase == "":
			s.phase(&pv, corev1.VolumeAvailable)
		case pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.Name == nobody && pv.Status.Phase != corev1.VolumeReleased:
			s.phase(&pv, corev1.VolumeReleased)
		case quiet && pv.Status.Phase == corev1.VolumeBound, n < 12 && pv.Status.Phase == corev1.VolumeBound:
			s.phase(&pv, corev1.VolumeReleased)
		case quiet:
		case n < 12 && pv.Status.Phase == corev1.VolumeAvailable && pv.Spec.ClaimRef == nil && pv.DeletionTimestamp == nil:
			if by, is := s.dirty[volume]; is {
				s.Fatalf("VIOLATION: %s is bound to %s, on which are the data of %s", pv.Name, volume, by)
			}
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "a", Name: "claim", UID: types.UID(pv.Name)}
			s.must(s.api.Update(s.Context(), &pv))
			s.phase(&pv, corev1.VolumeBound)
			s.dirty[volume] = pv.Name
		case n < 13:
			s.must(client.IgnoreNotFound(s.api.Delete(s.Context(), &pv)))
		case n < 14 && pv.Status.Phase == corev1.VolumeReleased: // By force.
			for _, m := range s.masters { // Each master sees at least one event of an object.
				m.ofVolume(s.Context(), &pv)
			}
			pv.Finalizers = nil
			s.must(client.IgnoreNotFound(s.api.Update(s.Context(), &pv)))
			s.must(client.IgnoreNotFound(s.api.Delete(s.Context(), &pv)))
		}
	}
}

func (s *simulation) phase(pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) {
	pv.Status.Phase = phase
	s.must(s.api.Status().Update(s.Context(), pv))
}

// check checks that no volume has two PersistentVolumes that could be bound, and that none of those is dirty.
func (s *simulation) check() {
	s.Helper()
	usable := map[string]string{}
	for _, pv := range s.all() {
		volume := pv.Annotations[v1alpha1.LocalVolumeAnnotation]
		if pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.Name == nobody {
			continue
		}
		if !s.acked[pv.Name] {
			s.Fatalf("VIOLATION: %s was made before the worker had said that %s is free", pv.Name, volume)
		}
		if pv.DeletionTimestamp != nil {
			continue
		}
		if other := usable[volume]; other != "" {
			s.Fatalf("VIOLATION: %s and %s are both of %s", other, pv.Name, volume)
		}
		usable[volume] = pv.Name
		if by, is := s.dirty[v1alpha1.VolumeName(volume)]; is && by != pv.Name {
			s.Fatalf("VIOLATION: %s is offered by %s, on which are the data of %s", volume, pv.Name, by)
		}
	}
}

func (s *simulation) run(steps int) {
	for range steps {
		switch s.IntN(5) {
		case 0:
			s.see(s.IntN(2), s.IntN(3))
		case 1:
			s.work()
		case 2:
			s.happen(false)
		default:
			s.manage(s.IntN(2))
		}
	}
	s.cuts = 0
	for range 80 { // No more random events; one master leads.
		s.happen(true)
		s.work()
		s.see(0, 2)
		s.manage(0)
	}
	var usable []string
	for _, pv := range s.all() {
		if pv.DeletionTimestamp != nil || pv.Status.Phase != corev1.VolumeAvailable {
			s.Errorf("VIOLATION: %s is left, %s", pv.Name, pv.Status.Phase)
		}
		usable = append(usable, pv.Annotations[v1alpha1.LocalVolumeAnnotation])
	}
	slices.Sort(usable)
	if got := strings.Join(usable, " "); got != "disk-0 disk-1 disk-2" {
		s.Errorf("VIOLATION: at rest are offered %q, want all disks", got)
	}
	if storage := s.storage(); len(storage.Spec.Offers) != disks || len(storage.Spec.DeleteOperations) > 0 {
		s.Errorf("VIOLATION: at rest the spec is %+v", storage.Spec)
	}
}

// TestHistories runs random histories, and checks after each step that no PersistentVolume offers a dirty disk.
func TestHistories(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newSimulation(t, seed, 10).run(300) })
	}
}
