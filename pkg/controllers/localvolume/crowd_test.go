package localvolume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// counted counts the objects that are read from a cache.
type counted struct {
	client.Reader
	objects int
}

func (c *counted) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Reader.List(ctx, list, options...)
	c.objects += meta.LenList(list)
	return err
}

// newCrowd returns a master with the given number of volumes, and as many snapshots, of which half are in groups of
// four. It reads them from the cache of a manager.
func newCrowd(tb testing.TB, count int) (*Master, *counted) {
	tb.Helper()
	var volumes v1alpha1.LocalVolumeList
	var snapshots v1alpha1.LocalSnapshotList
	var groups v1alpha1.LocalSnapshotGroupList
	for n := range count {
		name := fmt.Sprint("pvc-", n)
		volumes.Items = append(volumes.Items, readyVolume(name))
		if n%2 == 0 {
			snapshots.Items = append(snapshots.Items, readySnapshot(name))
		}
		if n%8 == 0 {
			groups.Items = append(groups.Items, readyGroup(name, 4))
		}
	}
	reader := &counted{Reader: cached(tb, &volumes, &snapshots, &groups)}
	return masterOver(reader), reader
}

// masterOver returns a master that only reads a cache.
func masterOver(cache client.Reader) *Master {
	return New(Options{Namespace: namespace, TopologyKey: key, Handle: local.Handle, SnapshotHandle: local.SnapshotHandle,
		GroupHandle: local.GroupHandle, MemberHandle: local.MemberHandle, Access: local.Access,
		Log: slog.New(slog.DiscardHandler)}, cache, nil, nil)
}

func ordered(handle string) (metav1.ObjectMeta, v1alpha1.Order, v1alpha1.OrderStatus) {
	return metav1.ObjectMeta{Namespace: namespace, Name: handle, Finalizers: []string{finalizer}},
		v1alpha1.Order{Node: "node-0", Attempt: 1}, v1alpha1.OrderStatus{State: v1alpha1.StateReady, Attempt: 1}
}

func readyVolume(name string) (o v1alpha1.LocalVolume) {
	o.ObjectMeta, o.Spec.Order, o.Status.OrderStatus = ordered(local.Handle(name))
	o.Spec.VolumeName, o.Spec.Pool, o.Spec.PoolType = name, "image", "image"
	o.Status.Capacity = v1alpha1.NewSize(mib)
	return o
}

const taken = "2026-01-01T00:00:00Z"

func readySnapshot(name string) (o v1alpha1.LocalSnapshot) {
	o.ObjectMeta, o.Spec.Order, o.Status.OrderStatus = ordered(local.SnapshotHandle(name))
	o.Spec.SnapshotName, o.Spec.Volume = name, local.Handle(name)
	o.Status.Size, o.Status.TakenAt = v1alpha1.NewSize(mib), taken
	return o
}

func readyGroup(name string, members int) (o v1alpha1.LocalSnapshotGroup) {
	o.ObjectMeta, o.Spec.Order, o.Status.OrderStatus = ordered(local.GroupHandle(name))
	o.Spec.GroupName, o.Status.TakenAt = name, taken
	for n := range members {
		o.Spec.Members = append(o.Spec.Members, v1alpha1.GroupMember{Volume: local.Handle(fmt.Sprint(name, n)),
			Snapshot: local.MemberHandle(o.Name, n)})
		o.Status.Sizes = append(o.Status.Sizes, v1alpha1.NewSize(mib))
	}
	return o
}

// cached returns the cache of a manager that has the objects of one list for each type. The test's end stops it.
func cached(tb testing.TB, lists ...client.ObjectList) client.Reader {
	tb.Helper()
	scheme, group := runtime.NewScheme(), v1alpha1.GroupVersion()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{group})
	for kind := range scheme.KnownTypes(group) {
		mapper.Add(group.WithKind(kind), meta.RESTScopeNamespace)
	}
	source := func(of runtime.Object) still {
		for _, list := range lists {
			if fmt.Sprintf("%TList", of) == fmt.Sprintf("%T", list) {
				return still{list}
			}
		}
		tb.Fatalf("the cache has no %T", of)
		return still{}
	}
	c, err := cache.New(&rest.Config{}, cache.Options{Scheme: scheme, Mapper: mapper, HTTPClient: http.DefaultClient,
		NewInformer: func(_ toolscache.ListerWatcher, of runtime.Object, resync time.Duration,
			indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(source(of), of, resync, indexers)
		}})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(tb.Context())
	if err := Index(ctx, c); err != nil {
		tb.Fatal(err)
	}
	var running sync.WaitGroup
	tb.Cleanup(running.Wait)
	tb.Cleanup(stop)
	running.Go(func() {
		if err := c.Start(ctx); err != nil && !errors.Is(err, context.Canceled) {
			tb.Error(err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		tb.Fatal("the cache does not start")
	}
	return c
}

// still is an API server with objects that do not change.
type still struct{ list client.ObjectList }

func (s still) List(metav1.ListOptions) (runtime.Object, error) { return s.list, nil }

func (s still) Watch(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

// IsWatchListSemanticsUnSupported makes the cache call List.
func (s still) IsWatchListSemanticsUnSupported() bool { return true }
