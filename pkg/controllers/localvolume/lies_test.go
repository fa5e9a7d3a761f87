package localvolume

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// lie runs a worker without a driver: write sets the status of each order that waits for it.
func lie[O order](c *calm, s *orders[O], write func(o O)) {
	c.background.Go(func() {
		for c.ctx.Err() == nil {
			all, err := s.all(c.ctx)
			if err != nil {
				c.Error(err)
			}
			for _, o := range all {
				if hasEnded(o) {
					continue
				}
				if write(o); hasEnded(o) {
					_ = c.api.Status().Update(c.ctx, o) // It tries again.
					c.masters[0].Changed(o.GetName())
				}
			}
			c.sleep(100 * time.Millisecond)
		}
	})
}

// ended writes the result of an order.
func ended(o v1alpha1.Ordered, state v1alpha1.OrderState, refusal *v1alpha1.Refusal) {
	spec, status := o.Ordered()
	status.State, status.Attempt, status.Refusal = state, spec.Attempt, refusal
}

// TestReadyWithoutASize checks that a volume that is too small or has no size, and a snapshot without a valid time, are
// not acknowledged.
func TestReadyWithoutASize(t *testing.T) {
	for _, size := range []v1alpha1.Size{"", "-5", "5", "1e1.5"} {
		inCalm(t, func(c *calm) {
			lie(c, &c.masters[0].volumes, func(o *v1alpha1.LocalVolume) {
				ended(o, v1alpha1.StateReady, nil)
				o.Status.Capacity = size
			})
			if made, err := c.create(c.masters[0], wanted("volume", "")); err == nil || isFinal(err) {
				t.Errorf("with the size %q the volume is %+v: %v", size, made, err)
			}
		})
	}
	for _, at := range []string{"", "2026-01-01 00:00:00"} {
		inCalm(t, func(c *calm) {
			v := c.lyingVolume(nil)
			lie(c, &c.masters[0].snapshots, func(o *v1alpha1.LocalSnapshot) {
				ended(o, v1alpha1.StateReady, nil)
				o.Status.Size, o.Status.TakenAt = v1alpha1.NewSize(mib), at
			})
			ctx, cancel := context.WithTimeout(c.ctx, 2*time.Minute)
			defer cancel()
			taken, err := edge(c.masters[0]).CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: v.Handle})
			if err == nil || isFinal(err) {
				t.Errorf("with the time %q the snapshot is %+v: %v", at, taken, err)
			}
		})
	}
}

// lyingVolume returns a volume that a worker claims to have created. For its deletion the worker reports the given
// refusal.
func (c *calm) lyingVolume(deletion *v1alpha1.Refusal) *backends.Volume {
	c.Helper()
	lie(c, &c.masters[0].volumes, func(o *v1alpha1.LocalVolume) {
		ended(o, v1alpha1.StateReady, nil)
		if o.Status.Capacity = v1alpha1.NewSize(mib); o.Spec.Delete {
			o.Status.Refusal = deletion
		}
	})
	v, err := c.create(c.masters[0], wanted("volume", ""))
	if err != nil {
		c.Fatal(err)
	}
	return v
}

// TestDeletionThatFindsNothing checks that a volume whose object reports it as ready does not count as deleted if the
// driver does not find it.
func TestDeletionThatFindsNothing(t *testing.T) {
	inCalm(t, func(c *calm) {
		v := c.lyingVolume(&v1alpha1.Refusal{Reason: "NotFound", Message: "there is none"})
		if err := edge(c.masters[0]).Delete(c.ctx, v.Handle); err == nil || isFinal(err) {
			t.Errorf("the object is there, and the volume is deleted: %v", err)
		}
	})
}

// TestDeletedUnasked checks that an order whose volume was deleted without a request is written again, and not retried
// endlessly.
func TestDeletedUnasked(t *testing.T) {
	inCalm(t, func(c *calm) {
		attempts := 0
		lie(c, &c.masters[0].volumes, func(o *v1alpha1.LocalVolume) {
			if attempts++; attempts == 1 {
				ended(o, v1alpha1.StateDeleted, nil)
				return
			}
			ended(o, v1alpha1.StateReady, nil)
			o.Status.Capacity = v1alpha1.NewSize(mib)
		})
		if _, err := c.create(c.masters[0], wanted("volume", "")); err != nil || attempts != 2 {
			t.Errorf("after %d attempts: %v", attempts, err)
		}
	})
}

// TestRefusalWithoutWords checks that a node that reports no room without a message is not asked again.
func TestRefusalWithoutWords(t *testing.T) {
	inCalm(t, func(c *calm) {
		lie(c, &c.masters[0].volumes, func(o *v1alpha1.LocalVolume) {
			if o.Spec.Node == "node-0" {
				ended(o, v1alpha1.StateAbsent, &v1alpha1.Refusal{Reason: "ResourceExhausted"})
			}
		})
		c.start("node-1")
		if made, err := c.create(c.masters[0], wanted("volume", "")); err != nil || made.Topology[0][key] != "node-1" {
			t.Errorf("node-0 has no room, and the volume is %+v: %v", made, err)
		}
	})
}

// TestRefusalBetweenTwoCalls checks that a refusal that came while no call was waiting is returned: otherwise work that
// takes longer than a call would start again with each call.
func TestRefusalBetweenTwoCalls(t *testing.T) {
	inCalm(t, func(c *calm) {
		attempts := 0
		ctx, cancel := context.WithTimeout(c.ctx, time.Second) // Stimulus: the call ends before there is an answer.
		_, err := edge(c.masters[0]).Create(ctx, wanted("volume", "node-0"), backends.ContentSource{})
		cancel()
		if err == nil || isFinal(err) {
			t.Errorf("before there is an answer: %v", err)
		}
		time.Sleep(2 * patience) //nolint:forbidigo // Simulated time: the work takes longer than the janitor waits.
		lie(c, &c.masters[0].volumes, func(o *v1alpha1.LocalVolume) {
			attempts++
			ended(o, v1alpha1.StateAbsent, &v1alpha1.Refusal{Reason: "InvalidArgument", Message: "no"})
		})
		time.Sleep(time.Second) //nolint:forbidigo // Simulated time, in which the refusal comes.
		janitor := newJanitor(&c.masters[0].volumes)
		if _, err := janitor.Reconcile(c.ctx, request(local.Handle("volume"))); err != nil {
			t.Error(err)
		}
		_, err = c.create(c.masters[0], wanted("volume", "node-0"))
		if !backends.Is(err, backends.Invalid) || attempts != 1 {
			t.Errorf("after the refusal and %d attempts: %v", attempts, err)
		}
		c.checkNothingIsLeft()
	})
}

// TestTextsThatAreNoHandles checks that a text that is not a handle is not used as an object's name: the API server
// would interpret some of them as paths.
func TestTextsThatAreNoHandles(t *testing.T) {
	inCalm(t, func(c *calm) {
		m := c.masters[0]
		m.live = interceptor.NewClient(c.api, interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errors.New("the name cannot be asked for")
			}})
		for _, handle := range []string{"a/b", "..", "50%", "", strings.ToUpper(local.Handle("volume"))} {
			if err := edge(m).Delete(c.ctx, handle); err != nil {
				t.Errorf("Delete(%q): %v", handle, err)
			}
			if err := edge(m).DeleteSnapshot(c.ctx, handle); err != nil {
				t.Errorf("DeleteSnapshot(%q): %v", handle, err)
			}
			if _, err := edge(m).Expand(c.ctx, handle, backends.CapacityRange{}); !backends.Is(err, backends.NotFound) {
				t.Errorf("Expand(%q): %v", handle, err)
			}
		}
	})
}

// TestOrdersThatAreAlwaysDeleted checks that a worker that reports each order as deleted neither makes the master write
// endlessly nor keeps a volume from other nodes.
func TestOrdersThatAreAlwaysDeleted(t *testing.T) {
	inCalm(t, func(c *calm) {
		var lies atomic.Int64
		lie(c, &c.masters[0].volumes, func(o *v1alpha1.LocalVolume) {
			if o.Spec.Node == "node-0" {
				lies.Add(1)
				ended(o, v1alpha1.StateDeleted, nil)
			}
		})
		c.start("node-1", "node-2")
		if _, err := c.create(c.masters[0], wanted("volume", "")); err != nil || lies.Load() > 2 {
			t.Errorf("two honest nodes have room; after %d lies: %v", lies.Load(), err)
		}
	})
}

// TestRoomThatCannotBe checks that one worker's wrong report does not make the total room negative.
func TestRoomThatCannotBe(t *testing.T) {
	inCalm(t, func(c *calm) {
		o := &v1alpha1.NodeStorage{}
		if err := c.api.Get(c.ctx, client.ObjectKey{Namespace: namespace, Name: "node-0"}, o); err != nil {
			t.Fatal(err)
		}
		o.Status.Pools[0].Available, o.Status.Pools[0].Largest = "9999999999999999999Ei", ""
		if err := c.api.Status().Update(c.ctx, o); err != nil {
			t.Fatal(err)
		}
		room, err := c.masters[0].Capacity(c.ctx, backends.CapacityQuery{Parameters: &local.Parameters{}})
		if err != nil || room.AvailableBytes <= 0 {
			t.Errorf("%+v, %v", room, err)
		}
	})
}
