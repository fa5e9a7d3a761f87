package volumeset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// hanging is a driver whose requests for one class hang until the call ends.
type hanging struct {
	*talker
	mu    *sync.Mutex
	asked map[string]bool
}

func (d hanging) Create(ctx context.Context, r csiclient.Request) (csiclient.Volume, error) {
	d.mu.Lock()
	d.asked[r.Name] = true
	d.mu.Unlock()
	if r.Parameters["class"] == "hangs" {
		<-ctx.Done()
		return csiclient.Volume{}, ctx.Err()
	}
	return csiclient.Volume{Handle: r.Name, SizeBytes: r.SizeBytes}, nil
}

// TestSetsThatHang checks that any number of sets whose class hangs leaves workers to the others, and that all slots of
// the others are processed.
func TestSetsThatHang(t *testing.T) {
	for name, c := range map[string]struct {
		workers int
		sets    []string // the class of each set
		asked   []int    // requested slots of each set, before any timeout
	}{
		"two, and one of another class": {8, []string{"hangs", "hangs", "works"}, []int{4, 2, 16}},
		"six, and one of another class": {32, []string{"hangs", "hangs", "hangs", "hangs", "hangs", "hangs", "works"},
			[]int{16, 8, 0, 0, 0, 0, 16}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { askedFor(t, c.workers, c.sets, c.asked) })
		})
	}
}

// askedFor fills sixteen slots of each set, one set after the other.
func askedFor(t *testing.T, workers int, classes []string, want []int) {
	t.Helper()
	var sets []client.Object
	for i, class := range classes {
		set := stored(func(set *v1alpha1.PersistentVolumeSet) {
			for slot := range 16 {
				making(fmt.Sprint("slot-", i, "-", slot))(set)
			}
			reordered(set, func(o *v1alpha1.VolumeOrder) { o.Class.Parameters = map[string]string{"class": class} })
		})
		set.Name, set.UID = fmt.Sprint("set-", i), types.UID(fmt.Sprint("uid-", i))
		sets = append(sets, set)
	}
	r, talks := bench(t, interceptor.Funcs{}, sets...)
	f, driver := r.filler, hanging{talks, &sync.Mutex{}, map[string]bool{}}
	f.driver, f.shares.workers, f.classes.workers = driver, workers, workers
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Start(ctx) }()
	got := make([]int, len(classes))
	for i, class := range classes {
		for slot := range 16 {
			f.fill(slotKey{sets[i].GetName(), fmt.Sprint("slot-", i, "-", slot)}, class)
		}
		synctest.Wait()
	}
	for i := range classes {
		for slot := range 16 {
			if driver.asked[fmt.Sprint("slot-", i, "-", slot)] {
				got[i]++
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("slots were asked for: %d, want %d", got, want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// stalled is a driver whose deletions for one class hang until the call ends.
type stalled struct {
	*talker
	mu      *sync.Mutex
	deleted map[string]bool
}

func (d stalled) Delete(ctx context.Context, handle string) error {
	if strings.HasPrefix(handle, "hangs") {
		<-ctx.Done()
		return ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deleted[handle] = true
	return nil
}

// TestDeletionsThatHang checks that any number of deletions of a class that hangs leaves workers to the others.
func TestDeletionsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []client.Object
		waiting := make(chan string, 100)
		for i := range 21 {
			v := described(t, stored(), fmt.Sprint("hangs-", i))[0]
			if i == 20 {
				v = described(t, stored(), "works")[0]
				v.Spec.StorageClassName = "slow"
			}
			v.Spec.CSI.VolumeHandle, v.DeletionTimestamp = v.Name, &metav1.Time{Time: time.Unix(1, 0)}
			objects = append(objects, v)
			waiting <- v.Name
		}
		r, talks := bench(t, interceptor.Funcs{}, objects...)
		var reads atomic.Int32
		live := interceptor.NewClient(r.client.(client.WithWatch), interceptor.Funcs{
			Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption,
			) error {
				reads.Add(1)
				return c.Get(ctx, key, into, options...)
			},
		})
		driver := stalled{talks, &sync.Mutex{}, map[string]bool{}}
		remove := removing(r, driver, time.Hour)
		remove.live, remove.shares.workers = live, 4
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for ctx.Err() == nil {
					select {
					case name := <-waiting:
						request := ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
						result, err := remove.Reconcile(ctx, request)
						if err != nil || result.RequeueAfter > 0 {
							time.AfterFunc(max(result.RequeueAfter, time.Second), func() { waiting <- name })
						}
					case <-ctx.Done():
					}
				}
			})
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if !driver.deleted["works"] {
			t.Error("the volume of the class that works is not deleted in a minute")
		}
		if got := reads.Load(); got > 3 { // Two for the class that hangs, and one for the other.
			t.Errorf("%d volumes are read past the cache, want 3: those that wait are not", got)
		}
		cancel()
		workers.Wait()
	})
}
