package controllers

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/localvolume"
	"github.com/stowage-csi/stowage/pkg/controllers/volumeworker"
	"github.com/stowage-csi/stowage/tests/inprocess"
)

const fleetNamespace = "stowage-system"

// fleet is a master over one node: the node's real driver on a real socket, its worker, and objects that stay in memory
// during the test.
type fleet struct {
	testing.TB
	api    client.WithWatch
	master *localvolume.Master
	driver *inprocess.Driver
	client *csiclient.Client
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// fleets holds the objects of clusters, by the directory of their node: they outlive a reopened backend.
type fleets struct {
	config string // of the drivers
	mu     sync.Mutex
	all    map[string]client.WithWatch
}

// newFleets returns fleets whose nodes have one pool.
func newFleets(pool string) *fleets {
	return &fleets{config: "pools: [{name: tested, " + pool + "}]", all: map[string]client.WithWatch{}}
}

// images is a pool of image files.
const images = "type: image, capacity: 4Gi"

func (f *fleets) of(tb testing.TB, dir string) client.WithWatch {
	tb.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if api, ok := f.all[dir]; ok {
		return api
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		tb.Fatal(err)
	}
	object := &v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: "node-a"}}
	machine := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}
	uids := atomic.Int64{}
	identify := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object,
		options ...client.CreateOption) error {
		o.SetUID(types.UID(fmt.Sprint(uids.Add(1))))
		return c.Create(ctx, o, options...)
	}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object, machine).WithInterceptorFuncs(identify).
		WithStatusSubresource(&v1alpha1.NodeStorage{}, &v1alpha1.LocalVolume{},
			&v1alpha1.LocalSnapshot{}, &v1alpha1.LocalSnapshotGroup{})
	if err := localvolume.Index(tb.Context(), indexed{builder}); err != nil {
		tb.Fatal(err)
	}
	f.all[dir] = builder.Build()
	return f.all[dir]
}

// indexed is an API server of the tests that is to have the indexes of a cache.
type indexed struct{ *fake.ClientBuilder }

// IndexField adds an index.
func (b indexed) IndexField(_ context.Context, of client.Object, field string, values client.IndexerFunc) error {
	b.WithIndex(of, field, values)
	return nil
}

// open starts the node and the master.
func (f *fleets) open(ctx context.Context, tb testing.TB, o backends.Options) *backends.Instance {
	tb.Helper()
	l := &fleet{TB: tb, api: f.of(tb, o.DataDir)}
	l.driver = inprocess.Start(tb, inprocess.Options{Backend: "local", NodeID: "node-a", Config: f.config,
		DataDir: filepath.Join(o.DataDir, "node-a")})
	var err error
	if l.client, err = csiclient.Connect(ctx, l.driver.Endpoint); err != nil {
		tb.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	l.master = localvolume.New(localvolume.Options{Namespace: fleetNamespace,
		TopologyKey: local.TopologyKey(o.Driver), Handle: local.Handle, SnapshotHandle: local.SnapshotHandle,
		GroupHandle: local.GroupHandle, MemberHandle: local.MemberHandle, Access: local.Access,
		NewMutable: local.Definition().NewMutable, Log: log}, l.api, l.api, l.api)
	worker := volumeworker.Options{Node: "node-a", Namespace: fleetNamespace, Driver: l.client, Timeout: time.Minute,
		Log: log}
	if err := volumeworker.NewReporter(worker, l.api, l.api).Report(ctx, true); err != nil {
		tb.Fatal(err)
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.work.Go(func() { l.run(life, worker) })
	return &backends.Instance{Controller: edge{l.master}, Node: l.driver.Instance.Node, Close: l.close}
}

// edge is the master without names that package driver refuses, because the node's driver would refuse them.
type edge struct{ *localvolume.Master }

// refused is the prefix of the replacement of a refused name.
const refused = "refused-"

func (e edge) in(spec backends.Spec) backends.Spec {
	spec.Name = encoded(spec.Name)
	return spec
}

func encoded(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Sprintf(refused+"%x", name)
	}
	return name
}

func (e edge) out(v *backends.Volume) *backends.Volume {
	if v != nil {
		v.Name = decoded(v.Name)
	}
	return v
}

func decoded(name string) string {
	if text, ok := strings.CutPrefix(name, refused); ok {
		original, _ := hex.DecodeString(text) // It was encoded above.
		return string(original)
	}
	return name
}

func (e edge) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := e.Master.Create(ctx, e.in(spec))
	return e.out(v), err
}

func (e edge) Clone(ctx context.Context, spec backends.Spec, source string) (*backends.Volume, error) {
	v, err := e.Master.Clone(ctx, e.in(spec), source)
	return e.out(v), err
}

func (e edge) Restore(ctx context.Context, spec backends.Spec, snapshot string) (*backends.Volume, error) {
	v, err := e.Master.Restore(ctx, e.in(spec), snapshot)
	return e.out(v), err
}

func (e edge) Find(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := e.Master.Find(ctx, e.in(spec))
	return e.out(v), err
}

func (e edge) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	v, err := e.Master.Get(ctx, handle)
	return e.out(v), err
}

func (e edge) List(ctx context.Context, page backends.Page) ([]backends.Volume, string, error) {
	all, next, err := e.Master.List(ctx, page)
	for i := range all {
		e.out(&all[i])
	}
	return all, next, err
}

func (e edge) CreateSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	spec.Name = encoded(spec.Name)
	return outSnapshot(e.Master.CreateSnapshot(ctx, spec))
}

func (e edge) FindSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	spec.Name = encoded(spec.Name)
	return outSnapshot(e.Master.FindSnapshot(ctx, spec))
}

func (e edge) GetSnapshot(ctx context.Context, handle string) (*backends.Snapshot, error) {
	return outSnapshot(e.Master.GetSnapshot(ctx, handle))
}

func (e edge) ListSnapshots(ctx context.Context, volume string, page backends.Page) (
	[]backends.Snapshot, string, error) {
	all, next, err := e.Master.ListSnapshots(ctx, volume, page)
	for i := range all {
		all[i].Name = decoded(all[i].Name)
	}
	return all, next, err
}

func (e edge) CreateGroup(ctx context.Context, spec backends.GroupSpec) (*backends.Group, error) {
	spec.Name = encoded(spec.Name)
	return outGroup(e.Master.CreateGroup(ctx, spec))
}

func (e edge) FindGroup(ctx context.Context, name string) (*backends.Group, error) {
	return outGroup(e.Master.FindGroup(ctx, encoded(name)))
}

func (e edge) GetGroup(ctx context.Context, handle string) (*backends.Group, error) {
	return outGroup(e.Master.GetGroup(ctx, handle))
}

func outGroup(g *backends.Group, err error) (*backends.Group, error) {
	if g != nil {
		g.Name = decoded(g.Name)
	}
	return g, err
}

func outSnapshot(s *backends.Snapshot, err error) (*backends.Snapshot, error) {
	if s != nil {
		s.Name = decoded(s.Name)
	}
	return s, err
}

func (l *fleet) close(context.Context) error {
	l.stop()
	l.work.Wait()
	err := l.client.Close()
	l.driver.Stop(l)
	return err
}

// run replaces the watches of the worker and the master.
func (l *fleet) run(ctx context.Context, o volumeworker.Options) {
	reporter := volumeworker.NewReporter(o, l.api, l.api)
	for ctx.Err() == nil {
		l.pass(ctx, &v1alpha1.LocalVolumeList{}, volumeworker.Volumes(o, l.api, l.api))
		l.pass(ctx, &v1alpha1.LocalSnapshotList{}, volumeworker.Snapshots(o, l.api, l.api))
		l.pass(ctx, &v1alpha1.LocalSnapshotGroupList{}, volumeworker.Groups(o, l.api, l.api))
		_ = reporter.Report(ctx, true) // It is retried.
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond): // Stimulus: the test's API reports no changes.
		}
	}
}

// pass reconciles all orders of a type, and notifies the master.
func (l *fleet) pass(ctx context.Context, list client.ObjectList, worker reconcile.Reconciler) {
	if err := l.api.List(ctx, list); err != nil {
		l.Error(err)
	}
	var passes sync.WaitGroup
	err := meta.EachListItem(list, func(o runtime.Object) error {
		order, ok := o.(v1alpha1.Ordered)
		if !ok {
			return fmt.Errorf("%T is no order", o)
		}
		if spec, status := order.Ordered(); status.Attempt < spec.Attempt {
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(order)}
			passes.Go(func() {
				_, _ = worker.Reconcile(ctx, request) // It is retried.
				l.master.Changed(order.GetName())
			})
		}
		return nil
	})
	passes.Wait()
	if err != nil {
		l.Error(err)
	}
}

// fleetSpec returns the specification of a volume in the pool.
func fleetSpec(name string) backends.Spec {
	return backends.Spec{
		Name: name, Capacity: backends.CapacityRange{RequiredBytes: 2 << 20},
		Parameters: &local.Parameters{Pool: "tested", Allocation: "sparse", OnDelete: "delete", SourceInUse: "refuse"},
		Access:     backends.Access{Types: []backends.AccessType{backends.Mount}, Modes: backends.SingleNodeModes()},
	}
}

// readAhead returns the read-ahead that the node's driver sets for the volume's device.
func readAhead(tb testing.TB, instance *backends.Instance, handle string) int {
	tb.Helper()
	source, err := instance.Node.Source(tb.Context(), backends.Attachment{Handle: handle, Type: backends.Mount})
	if err != nil {
		tb.Fatal(err)
	}
	return source.(backends.Device).ReadAheadKiB
}

// TestFleet checks that the master over a node keeps the promises of a backend.
func TestFleet(t *testing.T) {
	f := newFleets(images)
	definition := local.Definition()
	definition.NewConfig = nil
	definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		return f.open(ctx, t, o), nil
	}
	harness := backendtest.Over(definition, nil)
	harness.Nodes = []string{"node-a"}
	harness.Spec = fleetSpec
	harness.SnapshotParameters = &local.SnapshotParameters{InUse: "refuse"}
	for _, kib := range []int{128, 256} {
		harness.Modifications = append(harness.Modifications, backendtest.Modification{
			Value: &local.Mutable{ReadAheadKiB: &kib},
			Seen: func(tb testing.TB, instance *backends.Instance, handle string) bool {
				return readAhead(tb, instance, handle) == kib
			},
		})
	}
	backendtest.Run(t, harness)
}
