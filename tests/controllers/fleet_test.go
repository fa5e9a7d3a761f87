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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// fleet is a master over one node: the real driver of the node on a real socket, its worker, and objects that are kept
// in memory as long as the test.
type fleet struct {
	testing.TB
	api    client.WithWatch
	master *localvolume.Master
	driver *inprocess.Driver
	client *csiclient.Client
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// fleets are the objects of clusters, by the directory of their node: they outlive a backend that is opened again.
type fleets struct {
	mu  sync.Mutex
	all map[string]client.WithWatch
}

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
	f.all[dir] = fake.NewClientBuilder().WithScheme(scheme).WithObjects(object, machine).WithInterceptorFuncs(identify).
		WithStatusSubresource(&v1alpha1.NodeStorage{}, &v1alpha1.LocalVolume{}).Build()
	return f.all[dir]
}

// open starts the node and the master.
func (f *fleets) open(ctx context.Context, tb testing.TB, o backends.Options) *backends.Instance {
	tb.Helper()
	config := "pools: [{name: tested, type: image, capacity: 4Gi}]"
	l := &fleet{TB: tb, api: f.of(tb, o.DataDir)}
	l.driver = inprocess.Start(tb, inprocess.Options{Backend: "local", NodeID: "node-a", Config: config,
		DataDir: filepath.Join(o.DataDir, "node-a")})
	var err error
	if l.client, err = csiclient.Connect(ctx, l.driver.Endpoint); err != nil {
		tb.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	l.master = localvolume.New(localvolume.Options{Namespace: fleetNamespace,
		TopologyKey: local.TopologyKey(o.Driver), Handle: local.Handle, Access: local.Access, Log: log}, l.api, l.api, l.api)
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

// edge is the master without names that package driver refuses: the driver of the node would.
type edge struct{ *localvolume.Master }

// refused begins what stands for a name that package driver refuses.
const refused = "refused-"

func (e edge) in(spec backends.Spec) backends.Spec {
	if strings.ContainsFunc(spec.Name, unicode.IsControl) {
		spec.Name = fmt.Sprintf(refused+"%x", spec.Name)
	}
	return spec
}

func (e edge) out(v *backends.Volume) *backends.Volume {
	if v == nil {
		return nil
	}
	if text, ok := strings.CutPrefix(v.Name, refused); ok {
		name, _ := hex.DecodeString(text) // It was encoded above.
		v.Name = string(name)
	}
	return v
}

func (e edge) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := e.Master.Create(ctx, e.in(spec))
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

func (l *fleet) close() error {
	l.stop()
	l.work.Wait()
	err := l.client.Close()
	l.driver.Stop(l)
	return err
}

// run stands for the watches of the worker and the master.
func (l *fleet) run(ctx context.Context, o volumeworker.Options) {
	agent, reporter := volumeworker.New(o, l.api, l.api), volumeworker.NewReporter(o, l.api, l.api)
	for ctx.Err() == nil {
		var all v1alpha1.LocalVolumeList
		if err := l.api.List(ctx, &all); err != nil {
			l.Error(err)
		}
		var passes sync.WaitGroup
		for i := range all.Items {
			o := &all.Items[i]
			if o.Status.Attempt < o.Spec.Attempt {
				key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
				passes.Go(func() { _, _ = agent.Reconcile(ctx, ctrl.Request{NamespacedName: key}) }) // It is asked again.
			}
		}
		passes.Wait()
		_ = reporter.Report(ctx, true) // It is asked again.
		for i := range all.Items {
			l.master.Changed(all.Items[i].Name)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond): // Stimulus: the API of the test tells of no changes.
		}
	}
}

// TestFleet checks that the master over a node keeps the promises of a backend.
func TestFleet(t *testing.T) {
	f := &fleets{all: map[string]client.WithWatch{}}
	definition := local.Definition()
	definition.NewConfig, definition.NewMutable, definition.NewSnapshotParameters = nil, nil, nil
	definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		return f.open(ctx, t, o), nil
	}
	harness := backendtest.Over(definition, nil)
	harness.Nodes = []string{"node-a"}
	harness.Spec = func(name string) backends.Spec {
		return backends.Spec{
			Name: name, Capacity: backends.CapacityRange{RequiredBytes: 2 << 20},
			Parameters: &local.Parameters{Pool: "tested", Allocation: "sparse", OnDelete: "delete", SourceInUse: "refuse"},
			Access:     backends.Access{Types: []backends.AccessType{backends.Mount}, Modes: backends.SingleNodeModes()},
		}
	}
	backendtest.Run(t, harness)
}
