package volumeset

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// hanging is a driver that answers no request for a class, until the call ends.
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

// TestSetsThatHang checks that sets whose class hangs leave workers to the others, and that all their slots get their turn.
func TestSetsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named := func(name, class string, slots int) *v1alpha1.PersistentVolumeSet {
			set := stored(func(set *v1alpha1.PersistentVolumeSet) {
				for i := range slots {
					making(fmt.Sprint(name, i))(set)
				}
				set.Status.Orders[0].Class.Parameters = map[string]string{"class": class}
			})
			set.Name, set.UID = name, types.UID(name)
			return set
		}
		sets := []*v1alpha1.PersistentVolumeSet{named("one", "hangs", 8), named("two", "hangs", 8), named("three", "works", 8)}
		r, talks := bench(t, interceptor.Funcs{}, sets[0], sets[1], sets[2])
		f, driver := r.filler, hanging{talks, &sync.Mutex{}, map[string]bool{}}
		f.driver, f.workers = driver, 8
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Start(ctx) }()
		count := func() (counts [3]int) {
			for i, set := range sets {
				for _, slot := range set.Status.Slots {
					if driver.asked[slot.Name] {
						counts[i]++
					}
				}
			}
			return counts
		}
		for _, set := range sets {
			for _, slot := range set.Status.Slots {
				f.fill(slotKey{set.Name, slot.Name})
			}
			synctest.Wait()
		}
		if got := count(); got != [3]int{4, 2, 8} {
			t.Errorf("%d slots were asked for, want 4, 2 and 8", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
