package localvolume

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient/csiclienttest"
)

// TestObjectDeletedByHand checks that deleting a volume's object by hand, even during its creation, does not affect the
// users of the volume: the object goes with the volume.
func TestObjectDeletedByHand(t *testing.T) {
	inCalm(t, func(c *calm) {
		m := c.masters[0]
		c.start("node-0", "node-1", "node-2")
		c.background.Go(func() { _, _ = c.create(m, wanted("volume", "")) }) // It is retried below.
		for len(c.names(&v1alpha1.LocalVolumeList{}, "")) == 0 || c.object().Status.State == "" {
			time.Sleep(time.Millisecond) //nolint:forbidigo // Simulated time.
		}
		if err := c.api.Delete(c.ctx, c.object()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.create(m, wanted("volume", "")); err != nil {
			t.Error(err)
		}
		size := backends.CapacityRange{RequiredBytes: 2 * mib}
		if grown, err := edge(m).Expand(c.ctx, local.Handle("volume"), size); err != nil || grown.CapacityBytes != 2*mib {
			t.Errorf("it grows to %d bytes: %v", grown.CapacityBytes, err)
		}
		if err := edge(m).Delete(c.ctx, local.Handle("volume")); err != nil {
			t.Error(err)
		}
		c.checkNothingIsLeft()
	})
}

// TestRefusedWhileAskedAgain checks that a refusal is final only once its LocalVolume is gone: another master may have
// requested another attempt.
func TestRefusedWhileAskedAgain(t *testing.T) {
	inCalm(t, func(c *calm) {
		a := c.masters[0]
		var once sync.Once
		a.write = interceptor.NewClient(c.api, interceptor.Funcs{
			Create: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.CreateOption) error {
				o.SetUID("of-a")
				return w.Create(ctx, o, options...)
			},
			Delete: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				once.Do(func() {
					o := c.object()
					o.Spec.Attempt++
					if err := c.api.Update(ctx, o); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Second) //nolint:forbidigo // Simulated time.
				})
				return deleteIf(ctx, w, o, options)
			}})
		c.background.Go(func() { c.answers(local.Handle("volume")) })
		_, err := c.create(a, wanted("volume", ""))
		time.Sleep(5 * time.Second) //nolint:forbidigo // Simulated time.
		if o := c.object(); err != nil && isFinal(err) && o.Status.State == v1alpha1.StateReady {
			t.Errorf("a call was refused for good (%v), and the volume is there", err)
		}
	})
}

// answers simulates a worker whose driver refuses the first attempt, with the proof that nothing exists, and carries
// out the second.
func (c *calm) answers(handle string) {
	for c.ctx.Err() == nil {
		o := &v1alpha1.LocalVolume{}
		err := c.api.Get(c.ctx, client.ObjectKey{Namespace: namespace, Name: handle}, o)
		if err == nil && !hasEnded(o) {
			o.Status.Attempt, o.Status.State = o.Spec.Attempt, v1alpha1.StateReady
			o.Status.Capacity = v1alpha1.NewSize(mib)
			if o.Spec.Attempt == 1 {
				o.Status = v1alpha1.VolumeStatus{OrderStatus: v1alpha1.OrderStatus{Attempt: 1, State: v1alpha1.StateAbsent,
					Refusal: &v1alpha1.Refusal{Reason: "InvalidArgument", Message: "no"}}}
			}
			_ = c.api.Status().Update(c.ctx, o) // It tries again.
			c.masters[0].Changed(handle)
			c.masters[1].Changed(handle)
		}
		c.sleep(100 * time.Millisecond)
	}
}

// TestForeignVolumeIsNotOwn checks that a call does not return a volume that another master created under the name
// meanwhile, after withdrawing this call's order.
func TestForeignVolumeIsNotOwn(t *testing.T) {
	inCalm(t, func(c *calm) {
		a, b := c.masters[0], c.masters[1]
		c.background.Go(func() {
			if made, err := c.create(a, wanted("volume", "node-0")); err == nil {
				t.Errorf("on node-0 was wanted a volume of 1 MiB: it is on %v, of %d bytes", made.Topology, made.CapacityBytes)
			}
		})
		time.Sleep(5 * time.Second) //nolint:forbidigo // Simulated time, in which the first has written its object.
		c.start("node-1")
		other := wanted("volume", "node-1")
		other.Fingerprint, other.Capacity.RequiredBytes = "g", 7*mib
		if _, err := c.create(b, other); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // Simulated time, in which the first call ends.
	})
}

// TestForeignOrderStands checks that a call whose order was withdrawn does not withdraw the other call's order, even if
// it never saw the name free: they would withdraw each other's orders in turns.
func TestForeignOrderStands(t *testing.T) {
	inCalm(t, func(c *calm) {
		c.background.Go(func() {
			if _, err := c.create(c.masters[0], wanted("volume", "node-0")); !backends.Is(err, backends.Busy) {
				t.Errorf("a call whose order was withdrawn ends with %v", err)
			}
		})
		time.Sleep(5 * time.Second) //nolint:forbidigo // Simulated time, in which it has written its order.
		other := &v1alpha1.LocalVolume{Spec: intent(wanted("volume", "node-1"), candidate{node: "node-1",
			pool: v1alpha1.PoolStatus{Name: "image", Type: "image"}}, backends.CapacityRange{RequiredBytes: 7 * mib})}
		other.Namespace, other.Name, other.UID = namespace, local.Handle("volume"), "other"
		other.Spec.Fingerprint = "g"
		own := c.object()
		own.Finalizers = nil
		if err := errors.Join(c.api.Update(c.ctx, own), c.api.Delete(c.ctx, own), c.api.Create(c.ctx, other)); err != nil {
			t.Fatal(err)
		}
		c.masters[0].Changed(other.Name)
		time.Sleep(10 * time.Second) //nolint:forbidigo // Simulated time, in which the call ends.
		if o := c.object(); o.UID != "other" {
			t.Errorf("the other order was withdrawn, and %s on %s stands for it", o.UID, o.Spec.Node)
		}
	})
}

// TestWorkThatNeverEndsTakesNoRoom checks that volumes under way, which may never be created, do not keep others from a
// node that has room.
func TestWorkThatNeverEndsTakesNoRoom(t *testing.T) {
	inCalm(t, func(c *calm) {
		o := &v1alpha1.LocalVolume{Spec: intent(wanted("huge", ""), candidate{node: "node-0",
			pool: v1alpha1.PoolStatus{Name: "image", Type: "image"}}, backends.CapacityRange{RequiredBytes: math.MaxInt64})}
		o.Namespace, o.Name = namespace, local.Handle("huge")
		if err := c.api.Create(c.ctx, o); err != nil {
			t.Fatal(err)
		}
		where, err := c.masters[0].choose(c.ctx, wanted("volume", "node-0"), "", nil)
		if err != nil || where.node != "node-0" {
			t.Errorf("19 MiB are free on node-0, and %q is chosen for 1 MiB: %v", where.node, err)
		}
		if where, err = c.masters[0].choose(c.ctx, wanted("volume", ""), "", nil); err != nil || where.node == "node-0" {
			t.Errorf("%q is chosen, with more under way than it has: %v", where.node, err)
		}
	})
}

// TestAttemptThatWasNotAsked checks that a status with a future attempt stops nothing.
func TestAttemptThatWasNotAsked(t *testing.T) {
	inCalm(t, func(c *calm) {
		c.start("node-0", "node-1", "node-2")
		if _, err := c.create(c.masters[0], wanted("volume", "")); err != nil {
			t.Fatal(err)
		}
		o := c.object()
		o.Status.Attempt = math.MaxInt64
		if err := c.api.Status().Update(c.ctx, o); err != nil {
			t.Fatal(err)
		}
		if err := edge(c.masters[0]).Delete(c.ctx, o.Name); err != nil {
			t.Error(err)
		}
		c.checkNothingIsLeft()
	})
}

// TestNobodyWaits checks that calls that have ended leave no waiters.
func TestNobodyWaits(t *testing.T) {
	inCalm(t, func(c *calm) {
		for i := range 10 {
			gone := &v1alpha1.LocalVolume{}
			gone.Name = fmt.Sprint("gone-", i)
			if err := c.masters[0].volumes.await(c.ctx, gone); err != nil {
				t.Error(err)
			}
		}
		_, _ = c.create(c.masters[0], wanted("volume", "")) // No worker runs.
		if left := len(c.masters[0].volumes.news.waiting); left > 0 {
			t.Errorf("%d names are waited for by nobody", left)
		}
	})
}

// TestRefusedGrowth checks that the errors that csi-resizer needs to take back a claim's size stay final.
func TestRefusedGrowth(t *testing.T) {
	o := &v1alpha1.LocalVolume{}
	for reason, unusable := range map[string]bool{"Internal": false, "DataLoss": true} {
		o.Status.Refusal = &v1alpha1.Refusal{Reason: reason, Message: "no"}
		if err := (&Master{}).refused(o); backends.Is(err, backends.Unusable) != unusable {
			t.Errorf("%s becomes %v", reason, err)
		}
	}
}

// TestRefusalWithoutProof checks that a refusal without a proof of absence is not returned as final, and that the
// node's volume of the name stays: it may be another's, for example of an object that was removed by force.
func TestRefusalWithoutProof(t *testing.T) {
	for _, refusal := range []error{csiclienttest.Invalid(), csiclienttest.Full()} {
		inCalm(t, func(c *calm) {
			first := c.nodes["node-0"] // All have the same room.
			first.mu.Lock()
			first.refuses = refusal
			first.mu.Unlock()
			c.start("node-0", "node-1")
			for range 3 {
				made, err := c.create(c.masters[0], wanted("volume", ""))
				if nodes := c.have("volume"); err == nil || isFinal(err) || !slices.Equal(nodes, []string{"node-0"}) {
					t.Errorf("the driver has refused (%v), and the volume is %+v, on %v: %v", refusal, made, nodes, err)
				}
			}
		})
	}
}
