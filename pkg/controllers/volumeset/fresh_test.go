package volumeset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// TestNoRequestByAnOldRead checks that a manager that was stopped after it had read a slot does not ask the driver, and
// asks it once it has read the slot again.
func TestNoRequestByAnOldRead(t *testing.T) {
	now, stop := time.Unix(1000, 0), 2*freshFor
	r, driver := bench(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, ok := o.(*corev1.PersistentVolume); ok {
				now = now.Add(stop)
			}
			return c.Get(ctx, key, o, options...)
		},
	}, stored(making("x")), fast())
	r.filler.now, r.filler.fresh = func() time.Time { return now }, freshFor
	key := slotKey{set: "set", slot: "x"}
	_, err := r.filler.attempt(t.Context(), key)
	if !errors.Is(err, errOld) || driver.created > 0 || r.filler.progressOf(key).open {
		t.Errorf("after a stop the driver is asked %d times, and the request is open: %t; the attempt ends with %v",
			driver.created, r.filler.progressOf(key).open, err)
	}
	stop = 0
	if _, err := r.filler.attempt(t.Context(), key); err != nil || driver.created != 1 {
		t.Errorf("without a stop the driver is asked %d times, want once: %v", driver.created, err)
	}
}

// slowly is a driver in whose requests something else happens.
type slowly struct {
	*talker
	happens func()
}

func (d slowly) Create(ctx context.Context, r csiclient.Request) (csiclient.Volume, error) {
	d.happens()
	return d.talker.Create(ctx, r)
}

// TestNoPersistentVolumeByAnOldRead checks that a manager creates no PersistentVolume if its slot ended or was taken
// over during a long request, and that it creates one if the request was just long.
func TestNoPersistentVolumeByAnOldRead(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*v1alpha1.PersistentVolumeSetStatus)
		slow    time.Duration // the second read of the set
		created bool
		says    string
		event   string // what the event of the set says; empty for none
	}{
		"the slot is there": {change: func(*v1alpha1.PersistentVolumeSetStatus) {}, created: true},
		"the slot is gone": {change: func(s *v1alpha1.PersistentVolumeSetStatus) { s.Slots = nil },
			says:  `"handle-x" so late that the slot is gone`,
			event: `Warning VolumeWithoutSlot the driver answered to x with the handle "handle-x"`},
		"another has the slot": {change: func(s *v1alpha1.PersistentVolumeSetStatus) { s.Slots[0].Manager = "another" }},
		"stopped a second time": {change: func(*v1alpha1.PersistentVolumeSetStatus) {}, slow: 2 * freshFor,
			says: errOld.Error()},
	} {
		now, slow := time.Unix(1000, 0), time.Duration(0)
		r, driver := bench(t, interceptor.Funcs{
			Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object,
				options ...client.GetOption) error {
				err := api.Get(ctx, key, o, options...)
				if _, ok := o.(*v1alpha1.PersistentVolumeSet); ok {
					now = now.Add(slow)
				}
				return err
			},
		}, stored(making("x")), fast())
		told := events.NewFakeRecorder(1)
		r.filler.now, r.filler.fresh, r.filler.events = func() time.Time { return now }, freshFor, told
		r.filler.driver = slowly{driver, func() {
			set := &v1alpha1.PersistentVolumeSet{}
			if err := r.client.Get(t.Context(), client.ObjectKey{Name: "set"}, set); err != nil {
				t.Fatal(err)
			}
			c.change(&set.Status)
			if err := r.client.Status().Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			now, slow = now.Add(2*freshFor), c.slow
		}}
		_, err := r.filler.attempt(t.Context(), slotKey{set: "set", slot: "x"})
		if (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: the attempt ends with %v, want %q", name, err, c.says)
		}
		close(told.Events)
		if event := <-told.Events; (event == "") != (c.event == "") || !strings.HasPrefix(event, c.event) {
			t.Errorf("%s: the event is %q, want %q", name, event, c.event)
		}
		err = r.client.Get(t.Context(), client.ObjectKey{Name: "x"}, &corev1.PersistentVolume{})
		if client.IgnoreNotFound(err) != nil || (err == nil) != c.created {
			t.Errorf("%s: there is a PersistentVolume: %t, want %t", name, err == nil, c.created)
		}
	}
}

// TestNoDeletionByAnOldRead checks that a manager that was stopped after it had read a PersistentVolume does not delete
// its volume, and deletes it once it has read it again.
func TestNoDeletionByAnOldRead(t *testing.T) {
	now, stop := time.Unix(1000, 0), 2*freshFor
	v := described(t, stored(), "x:available:deleting")[0]
	r, driver := bench(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if _, ok := into.(*corev1.PersistentVolumeList); ok { // Of its handle, which comes last.
				now = now.Add(stop)
			}
			return c.List(ctx, into, options...)
		},
	}, v)
	remove := removing(r, driver, time.Minute)
	remove.now, remove.fresh = func() time.Time { return now }, freshFor
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)}
	if _, err := remove.Reconcile(t.Context(), request); !errors.Is(err, errOld) || driver.deleted > 0 {
		t.Errorf("after a stop %d volumes are deleted: %v", driver.deleted, err)
	}
	stop = 0
	if _, err := remove.Reconcile(t.Context(), request); err != nil || driver.deleted != 1 {
		t.Errorf("without a stop %d volumes are deleted, want 1: %v", driver.deleted, err)
	}
}
