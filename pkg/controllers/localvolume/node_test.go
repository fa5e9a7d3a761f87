package localvolume

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient/csiclienttest"
	"github.com/stowage-csi/stowage/pkg/controllers/volumeworker"
	"github.com/stowage-csi/stowage/pkg/pools"
	"github.com/stowage-csi/stowage/pkg/uses"
)

// node is a node: its driver, which gives the same guarantees as the real one, and its worker.
type node struct {
	*simulation
	name string

	mu        sync.Mutex
	room      int64
	volumes   map[string]thing // by handle
	snapshots map[string]thing
	locks     map[string]*sync.Mutex

	refuses       error // error for volumes that it has created
	refusesChange error // error for modifications
}

// usual is the size of a volume of any size.
const usual = 4 * mib

// thing is a volume or a snapshot.
type thing struct {
	bytes    int64
	contents string // the handle of the first volume with these contents
	taken    time.Time
	mutable  map[string]string
}

// refuse sets the driver's errors for created volumes and for modifications.
func (n *node) refuse(made, change error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuses, n.refusesChange = made, change
}

// mutable returns the mutable parameters of a volume that are in effect.
func (n *node) mutable(handle string) map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.volumes[handle].mutable
}

// take takes room for a new volume or snapshot. The caller holds the lock.
func (n *node) take(things map[string]thing, handle string, t thing) error {
	if t.bytes > n.room {
		return csiclienttest.Full()
	}
	n.room -= t.bytes
	things[handle] = t
	return nil
}

// run runs one worker process after another.
func (n *node) run(ctx context.Context) {
	for ctx.Err() == nil {
		life, end := context.WithCancel(ctx)
		volumes := volumeworker.Volumes(n.options(), n.api, n.client())
		snapshots := volumeworker.Snapshots(n.options(), n.api, n.client())
		groups := volumeworker.Groups(n.options(), n.api, n.client())
		for !n.happens(100) && ctx.Err() == nil {
			var passes sync.WaitGroup
			pass := func(worker reconcile.Reconciler, names []string) {
				for _, name := range names {
					passes.Go(func() {
						if n.happens(30) {
							time.AfterFunc(time.Duration(n.n(50))*time.Millisecond, end)
						}
						_, _ = worker.Reconcile(life, request(name)) // It is retried.
					})
				}
			}
			pass(volumes, n.names(&v1alpha1.LocalVolumeList{}, n.name))
			pass(snapshots, n.names(&v1alpha1.LocalSnapshotList{}, n.name))
			pass(groups, n.names(&v1alpha1.LocalSnapshotGroupList{}, n.name))
			passes.Wait()
			n.sleep(200 * time.Millisecond)
			if life.Err() != nil {
				break
			}
		}
		end()
		if n.happens(3) {
			n.setReady(n.name, corev1.ConditionUnknown)
			n.sleep(20 * time.Second)
			n.setReady(n.name, corev1.ConditionTrue)
		}
		n.sleep(time.Second)
	}
}

// report periodically reports the node's room.
func (n *node) report(ctx context.Context) {
	object := &v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.name}}
	if err := n.api.Create(ctx, object); err != nil {
		n.Error(err)
	}
	reporter := volumeworker.NewReporter(n.options(), n.api, n.client())
	for ctx.Err() == nil {
		_ = reporter.Report(ctx, true) // It is retried.
		n.sleep(2 * time.Second)
	}
}

func (n *node) options() volumeworker.Options {
	// Stimulus: in simulated time, the node's own work takes longer now and then.
	return volumeworker.Options{Node: n.name, Namespace: namespace, Driver: n, Timeout: 3 * time.Second,
		Log: slog.New(slog.DiscardHandler)}
}

// do runs work on a volume exclusively. The work continues after the caller is gone.
func do[T any](ctx context.Context, n *node, handle string, work func() (T, error)) (T, error) {
	var none T
	n.mu.Lock()
	lock, ok := n.locks[handle]
	if !ok {
		lock = &sync.Mutex{}
		n.locks[handle] = lock
	}
	n.mu.Unlock()
	if !lock.TryLock() {
		return none, csiclienttest.Busy()
	}
	type answer struct {
		result T
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		defer lock.Unlock()
		n.sleep(2 * time.Second)
		if n.happens(10) {
			n.sleep(10 * time.Second)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		result, err := work()
		done <- answer{result, err}
	}()
	select {
	case a := <-done:
		if n.happens(20) {
			return none, csiclienttest.Open()[0]
		}
		return a.result, a.err
	case <-ctx.Done():
		return none, csiclienttest.Open()[0]
	}
}

func (n *node) Place(context.Context) (map[string]string, error) {
	return map[string]string{key: n.name}, nil
}

func (n *node) Make(ctx context.Context, w csiclient.Wanted) (csiclient.Volume, error) {
	if n.happens(20) {
		return csiclient.Volume{}, csiclienttest.Refusals()[n.n(5)]
	}
	handle := local.Handle(w.Name)
	return do(ctx, n, handle, func() (csiclient.Volume, error) {
		made, ok := n.volumes[handle]
		if ok {
			return csiclient.Volume{Handle: handle, SizeBytes: made.bytes}, n.refuses
		}
		made = thing{bytes: cmp.Or(w.RequiredBytes, usual), contents: handle, mutable: maps.Clone(w.Mutable)}
		source, isThere := n.volumes[w.FromVolume]
		if w.FromSnapshot != "" {
			source, isThere = n.snapshots[w.FromSnapshot]
		}
		if w.FromSnapshot+w.FromVolume != "" {
			made.contents = source.contents
			if !isThere || source.bytes > made.bytes {
				n.Errorf("%s is to be a copy of %d bytes of %s%s, which is %+v", w.Name, made.bytes, w.FromSnapshot, w.FromVolume,
					source)
			}
		}
		if err := n.take(n.volumes, handle, made); err != nil {
			return csiclient.Volume{}, csiclienttest.Absent(err)
		}
		return csiclient.Volume{Handle: handle, SizeBytes: made.bytes}, n.refuses
	})
}

func (n *node) TakeSnapshot(ctx context.Context, w csiclient.SnapshotWanted) (csiclient.Snapshot, error) {
	if n.happens(20) {
		return csiclient.Snapshot{}, csiclienttest.Refusals()[n.n(5)]
	}
	handle := local.SnapshotHandle(w.Name)
	return do(ctx, n, handle, func() (csiclient.Snapshot, error) {
		if _, ok := n.snapshots[handle]; !ok {
			source, isThere := n.volumes[w.Volume]
			if !isThere {
				n.Errorf("a snapshot is to be taken of %s, which is not there", w.Volume)
			}
			source.taken = time.Now()
			if err := n.take(n.snapshots, handle, source); err != nil {
				return csiclient.Snapshot{}, csiclienttest.Absent(err)
			}
		}
		s := n.snapshots[handle]
		return csiclient.Snapshot{Handle: handle, Volume: w.Volume, SizeBytes: s.bytes, TakenAt: s.taken,
			IsReady: !n.happens(5)}, nil
	})
}

func (n *node) Expand(ctx context.Context, handle string, required, _ int64) (csiclient.Expansion, error) {
	return do(ctx, n, handle, func() (csiclient.Expansion, error) {
		v, ok := n.volumes[handle]
		switch more := required - v.bytes; {
		case !ok:
			n.Errorf("%s is to grow, and is not there", handle)
		case more > n.room:
			return csiclient.Expansion{}, csiclienttest.Full()
		case more > 0:
			v.bytes += more
			n.volumes[handle] = v
			n.room -= more
		}
		return csiclient.Expansion{SizeBytes: v.bytes}, nil
	})
}

func (n *node) Modify(ctx context.Context, handle string, mutable map[string]string) error {
	if n.happens(10) {
		return csiclienttest.Refusals()[n.n(5)]
	}
	_, err := do(ctx, n, handle, func() (bool, error) {
		v, ok := n.volumes[handle]
		if n.refusesChange != nil {
			return false, n.refusesChange
		}
		if !ok {
			n.Errorf("%s is to be modified, and is not there", handle)
		}
		v.mutable = maps.Clone(v.mutable) // Snapshots share the map.
		if v.mutable == nil {
			v.mutable = map[string]string{}
		}
		maps.Copy(v.mutable, mutable)
		n.volumes[handle] = v
		return true, nil
	})
	return err
}

func (n *node) Delete(ctx context.Context, handle string) error {
	return n.remove(ctx, n.volumes, handle)
}

func (n *node) DeleteSnapshot(ctx context.Context, handle string) error {
	return n.remove(ctx, n.snapshots, handle)
}

func (n *node) remove(ctx context.Context, things map[string]thing, handle string) error {
	if n.happens(5) {
		return csiclienttest.Refusals()[n.n(5)]
	}
	_, err := do(ctx, n, handle, func() (bool, error) {
		n.room += things[handle].bytes
		delete(things, handle)
		return true, nil
	})
	return err
}

func (n *node) Use(context.Context, string) (uses.Use, error) { return uses.Use{}, nil }

func (n *node) Pools(context.Context) ([]pools.Pool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return []pools.Pool{{Name: "image", Type: "image", AvailableBytes: n.room, LargestBytes: n.room}}, nil
}
