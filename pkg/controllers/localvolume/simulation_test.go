package localvolume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/volume"
)

const (
	namespace = "ns"
	key       = "driver/node"
	mib       = 1 << 20
)

var errCut = errors.New("the connection broke")

// simulation is a cluster: nodes with a driver and a worker each, two masters, and an API server whose answers are
// sometimes lost.
type simulation struct {
	*testing.T
	mu      sync.Mutex
	random  *rand.Rand
	faults  bool
	api     client.WithWatch
	masters [2]*Master
	nodes   map[string]*node
	uids    int
}

func (s *simulation) n(below int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(below)
}

// happens reports whether a fault happens. Its probability is 1/once.
func (s *simulation) happens(once int) bool { return s.faults && s.n(once) == 0 }

// sleep sleeps for a random time up to longest.
func (s *simulation) sleep(longest time.Duration) {
	time.Sleep(time.Duration(s.n(int(longest/time.Millisecond)+1)) * time.Millisecond) //nolint:forbidigo // Simulated time.
}

func newSimulation(t *testing.T, seed uint64, faults bool, room int64) *simulation {
	t.Helper()
	s := &simulation{T: t, random: rand.New(rand.NewPCG(seed, 1)), faults: faults, nodes: map[string]*node{}}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&v1alpha1.NodeStorage{}, &v1alpha1.LocalVolume{}, &v1alpha1.LocalSnapshot{},
			&v1alpha1.LocalSnapshotGroup{})
	if err := Index(t.Context(), indexed{builder}); err != nil {
		t.Fatal(err)
	}
	s.api = builder.Build()
	options := Options{Namespace: namespace, TopologyKey: key, Handle: local.Handle, SnapshotHandle: local.SnapshotHandle,
		GroupHandle: local.GroupHandle, MemberHandle: local.MemberHandle, Access: local.Access,
		NewMutable: local.Definition().NewMutable, Log: slog.New(slog.DiscardHandler)}
	for i := range s.masters {
		s.masters[i] = New(options, s.api, s.api, s.client())
	}
	for i := range 3 {
		name := fmt.Sprintf("node-%d", i)
		s.nodes[name] = &node{simulation: s, name: name, room: room, volumes: map[string]thing{},
			snapshots: map[string]thing{}, locks: map[string]*sync.Mutex{}}
		s.setReady(name, corev1.ConditionTrue)
	}
	return s
}

// indexed is an API server of the tests that is to have the indexes of a cache.
type indexed struct{ *fake.ClientBuilder }

// IndexField adds an index.
func (b indexed) IndexField(_ context.Context, of client.Object, field string, values client.IndexerFunc) error {
	b.WithIndex(of, field, values)
	return nil
}

// setReady writes the Ready condition of a node.
func (s *simulation) setReady(node string, ready corev1.ConditionStatus) {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	condition := corev1.NodeCondition{Type: corev1.NodeReady, Status: ready, Message: "the kubelet is silent"}
	o.Status.Conditions = []corev1.NodeCondition{condition}
	if err := s.api.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
		s.Error(err)
	}
	if err := s.api.Create(context.Background(), o); err != nil {
		s.Error(err)
	}
}

// client returns a process's client of the API server.
func (s *simulation) client() client.Client {
	return interceptor.NewClient(s.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			s.mu.Lock()
			s.uids++
			o.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", s.uids)))
			o.SetCreationTimestamp(metav1.Now())
			s.mu.Unlock()
			return s.answer(o, func() error { return c.Create(ctx, o, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return s.answer(o, func() error {
				if err := isSame(ctx, c, o); err != nil {
					return err
				}
				return c.Update(ctx, o, options...)
			})
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, resource string, o client.Object,
			options ...client.SubResourceUpdateOption) error {
			return s.answer(o, func() error {
				if err := isSame(ctx, c, o); err != nil {
					return err
				}
				return c.SubResource(resource).Update(ctx, o, options...)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return s.answer(o, func() error { return deleteIf(ctx, c, o, options) })
		},
	})
}

// isSame fails for a write to an object with another UID. The tests' API server does not check this: its versions
// restart with each object of a name, so an earlier object's version matches a later one's.
func isSame(ctx context.Context, c client.Client, o client.Object) error {
	now := o.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
		return err
	}
	if now.GetUID() != o.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("the UID is another's"))
	}
	return nil
}

// deleteIf deletes and checks the preconditions, which the tests' API server does not.
func deleteIf(ctx context.Context, c client.Client, o client.Object, options []client.DeleteOption) error {
	wanted := (&client.DeleteOptions{}).ApplyOptions(options).Preconditions
	now := o.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
		return err
	}
	if wanted != nil && (*wanted.ResourceVersion != now.GetResourceVersion() || *wanted.UID != now.GetUID()) {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("precondition"))
	}
	return c.Delete(ctx, now)
}

// answer carries out one write at a time. The answer may be lost.
func (s *simulation) answer(o client.Object, write func() error) error {
	s.sleep(20 * time.Millisecond)
	if s.happens(20) {
		return errCut
	}
	s.mu.Lock()
	err := write()
	s.mu.Unlock()
	name := o.GetName()
	go func() {
		s.sleep(30 * time.Millisecond)
		for _, m := range s.masters {
			m.Changed(name)
		}
	}()
	if err == nil && s.happens(20) {
		return errCut
	}
	return err
}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// run runs the workers and the leading master's background work until the context ends.
func (s *simulation) run(ctx context.Context, group *sync.WaitGroup) {
	for _, n := range s.nodes {
		group.Go(func() { n.run(ctx) })
		group.Go(func() { n.report(ctx) })
	}
	group.Go(func() {
		m := s.masters[0]
		volumes, snapshots, groups := newJanitor(&m.volumes), newJanitor(&m.snapshots), newJanitor(&m.groups)
		clean := func(janitor reconcile.Reconciler, list client.ObjectList) {
			for _, name := range s.names(list, "") {
				_, _ = janitor.Reconcile(ctx, request(name)) // It is retried.
			}
		}
		for ctx.Err() == nil {
			clean(volumes, &v1alpha1.LocalVolumeList{})
			clean(snapshots, &v1alpha1.LocalSnapshotList{})
			clean(groups, &v1alpha1.LocalSnapshotGroupList{})
			s.sleep(2 * time.Second)
		}
	})
}

// names returns the orders of a type on a node, or on all nodes if it is empty.
func (s *simulation) names(list client.ObjectList, node string) (names []string) {
	if err := s.api.List(context.Background(), list); err != nil {
		s.Error(err)
	}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		if order := o.(v1alpha1.Ordered); node == "" || nodeOf(order) == node {
			names = append(names, order.GetName())
		}
		return nil
	})
	if err != nil {
		s.Error(err)
	}
	return names
}

// have returns the nodes that have the volume.
func (s *simulation) have(name string) (nodes []string) {
	for _, n := range s.nodes {
		n.mu.Lock()
		if _, ok := n.volumes[local.Handle(name)]; ok {
			nodes = append(nodes, n.name)
		}
		n.mu.Unlock()
	}
	return nodes
}

// TestSimulation lets clients create, grow and delete volumes as the sidecars do, while everything else sometimes
// fails. An acknowledged volume exists once. A volume that was deleted or refused with a final error does not exist.
// Nothing is left over.
func TestSimulation(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() { // The gate's run with the race detector has no time for all, and needs no rare interleavings.
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t, seed, seed > 0, int64(20+seed%3*20)*mib)
				ctx, stop := context.WithCancel(t.Context())
				var background, clients sync.WaitGroup
				s.run(ctx, &background)
				for i := range 5 {
					clients.Go(func() {
						for k := range 6 {
							s.life(ctx, fmt.Sprintf("volume-%d-%d", i, k))
						}
					})
				}
				clients.Wait()
				time.Sleep(2 * patience) //nolint:forbidigo // Simulated time.
				stop()
				background.Wait()
				s.checkNothingIsLeft()
			})
		})
	}
}

func (s *simulation) checkNothingIsLeft() {
	left := slices.Concat(s.names(&v1alpha1.LocalVolumeList{}, ""), s.names(&v1alpha1.LocalSnapshotList{}, ""),
		s.names(&v1alpha1.LocalSnapshotGroupList{}, ""))
	if len(left) > 0 {
		s.Errorf("VIOLATION: %d orders are left: %v", len(left), left)
	}
	for _, n := range s.nodes {
		n.mu.Lock()
		if len(n.volumes)+len(n.snapshots) > 0 {
			s.Errorf("VIOLATION: node %s has volumes and snapshots that nobody knows: %v, %v", n.name, n.volumes, n.snapshots)
		}
		n.mu.Unlock()
	}
}

// service returns one of the masters as package driver calls it.
func (s *simulation) service() *volume.Service {
	m := s.masters[s.n(2)]
	return volume.New(m, backends.Resolve(m, nil), nil)
}

// isFinal reports whether csi-provisioner gives up a volume after the error.
func isFinal(err error) bool {
	return !backends.Is(err, backends.Busy) && !backends.Is(err, backends.Unavailable) &&
		!backends.Is(err, backends.Unusable) && !errors.Is(err, context.DeadlineExceeded)
}

// ask retries until the answer is final.
func (s *simulation) ask(ctx context.Context, do func(context.Context, *volume.Service) error) error {
	for {
		call, cancel := context.WithTimeout(ctx, 100*time.Millisecond+time.Duration(s.n(5000))*time.Millisecond)
		err := do(call, s.service())
		cancel()
		if err == nil || isFinal(err) {
			return err
		}
		s.sleep(time.Second)
	}
}
