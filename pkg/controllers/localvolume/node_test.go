package localvolume

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient/csiclienttest"
	"github.com/stowage-csi/stowage/pkg/controllers/volumeworker"
	"github.com/stowage-csi/stowage/pkg/pools"
)

// node is a node: its driver, which keeps promises as the real one does, and its worker.
type node struct {
	*simulation
	name string

	mu      sync.Mutex
	room    int64
	volumes map[string]int64 // sizes by handle
	locks   map[string]*sync.Mutex
}

// run is one worker process after another.
func (n *node) run(ctx context.Context) {
	for ctx.Err() == nil {
		life, end := context.WithCancel(ctx)
		worker := volumeworker.New(n.options(), n.api, n.client())
		for !n.happens(100) && ctx.Err() == nil {
			var passes sync.WaitGroup
			for _, name := range n.names(n.name) {
				passes.Go(func() {
					if n.happens(30) {
						time.AfterFunc(time.Duration(n.n(50))*time.Millisecond, end)
					}
					_, _ = worker.Reconcile(life, request(name)) // It is asked again.
				})
			}
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

// report says now and then which room there is.
func (n *node) report(ctx context.Context) {
	object := &v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.name}}
	if err := n.api.Create(ctx, object); err != nil {
		n.Error(err)
	}
	reporter := volumeworker.NewReporter(n.options(), n.api, n.client())
	for ctx.Err() == nil {
		_ = reporter.Report(ctx, true) // It is asked again.
		n.sleep(2 * time.Second)
	}
}

func (n *node) options() volumeworker.Options {
	return volumeworker.Options{Node: n.name, Namespace: namespace, Driver: n, Timeout: 3 * time.Second,
		Log: slog.New(slog.DiscardHandler)}
}

// do does something to a volume alone, and goes on with it after its caller is gone.
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
		size, ok := n.volumes[handle]
		switch {
		case ok:
		case w.RequiredBytes > n.room:
			return csiclient.Volume{}, csiclienttest.Absent(csiclienttest.Full())
		default:
			size = w.RequiredBytes
			n.volumes[handle] = size
			n.room -= size
		}
		return csiclient.Volume{Handle: handle, SizeBytes: size}, nil
	})
}

func (n *node) Expand(ctx context.Context, handle string, required, _ int64) (csiclient.Expansion, error) {
	return do(ctx, n, handle, func() (csiclient.Expansion, error) {
		size, ok := n.volumes[handle]
		switch more := required - size; {
		case !ok:
			n.Errorf("%s is to grow, and is not there", handle)
		case more > n.room:
			return csiclient.Expansion{}, csiclienttest.Full()
		case more > 0:
			n.volumes[handle] += more
			n.room -= more
		}
		return csiclient.Expansion{SizeBytes: n.volumes[handle]}, nil
	})
}

func (n *node) Delete(ctx context.Context, handle string) error {
	if n.happens(5) {
		return csiclienttest.Refusals()[n.n(5)]
	}
	_, err := do(ctx, n, handle, func() (bool, error) {
		n.room += n.volumes[handle]
		delete(n.volumes, handle)
		return true, nil
	})
	return err
}

func (n *node) Pools(context.Context) ([]pools.Pool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return []pools.Pool{{Name: "image", Type: "image", AvailableBytes: n.room, LargestBytes: n.room}}, nil
}
