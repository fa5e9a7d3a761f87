package volumeset

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// forgetful is a driver that returns the same handle for all volumes.
type forgetful struct{ *talker }

func (forgetful) Create(_ context.Context, r csiclient.Request) (csiclient.Volume, error) {
	return csiclient.Volume{Handle: "handle", SizeBytes: r.SizeBytes}, nil
}

// TestHandleGivenTwice checks that a volume handle never gets a second PersistentVolume, whatever the driver answers:
// two claims would write to the volume.
func TestHandleGivenTwice(t *testing.T) {
	blind := interceptor.Funcs{ // The cache is behind.
		List: func(
			ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption,
		) error {
			o := (&client.ListOptions{}).ApplyOptions(options)
			if o.FieldSelector != nil && strings.HasPrefix(o.FieldSelector.String(), handleIndex) {
				return nil
			}
			return c.List(ctx, into, options...)
		},
	}
	for name, objects := range map[string][]client.Object{
		"to two slots":                     nil,
		"to two slots, at once":            nil,
		"to a slot, and one of a person's": {described(t, stored(), "by-hand:bound:other")[0]},
	} {
		calls := interceptor.Funcs{}
		if strings.HasSuffix(name, "at once") {
			calls = blind
		}
		r, talks := bench(t, calls, append(objects, stored(making("x", "y")), fast())...)
		r.filler.driver = forgetful{talks}
		for _, slot := range []string{"x", "y", "x", "y"} { // The first may retry.
			_, err := r.filler.attempt(t.Context(), slotKey{set: "set", slot: slot})
			if isRefused := slot == "y" || len(objects) > 0; (err != nil) != isRefused {
				t.Errorf("%s: %s ends with %v", name, slot, err)
			}
			if err != nil && !strings.Contains(err.Error(), `"handle"`) {
				t.Errorf("%s: %s ends with %v", name, slot, err)
			}
		}
		var all corev1.PersistentVolumeList
		if err := r.client.List(t.Context(), &all); err != nil || len(all.Items) != 1 {
			t.Errorf("%s: there are %d PersistentVolumes of one volume (%v)", name, len(all.Items), err)
		}
		if set := r.look(t); len(set.Status.Slots) == 0 {
			t.Errorf("%s: the slots are gone", name)
		}
	}
}

// TestPersistentVolumeOfAnotherVolume checks that a slot stays if its PersistentVolume, which another manager has
// created, is of another volume than the driver returned to this one: nothing else would know the volume.
func TestPersistentVolumeOfAnotherVolume(t *testing.T) {
	for handle, isSame := range map[string]bool{"handle-x": true, "another": false} {
		r, _ := bench(t, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if v, ok := o.(*corev1.PersistentVolume); ok && len(options) == 0 {
					faster := v.DeepCopy()
					faster.Spec.CSI.VolumeHandle = handle
					if err := c.Create(ctx, faster); err != nil {
						return err
					}
				}
				return c.Create(ctx, o, options...)
			},
		}, stored(making("x")), fast())
		for range 2 { // It retries.
			_, err := r.filler.attempt(t.Context(), slotKey{set: "set", slot: "x"})
			if (err == nil) != isSame {
				t.Errorf("the PersistentVolume is of the volume %q: the attempt ends with %v", handle, err)
			}
			if err != nil && (!strings.Contains(err.Error(), `"handle-x"`) || !strings.Contains(err.Error(), `"another"`)) {
				t.Errorf("the attempt ends with %v, and does not name the volumes", err)
			}
		}
		if set := r.look(t); (slotOf(set, "x") == nil) != isSame {
			t.Errorf("the PersistentVolume is of the volume %q: the slots are %+v", handle, set.Status.Slots)
		}
	}
}

// TestVolumeOfAnother checks that deleting an unbound PersistentVolume does not delete its volume if a person has
// created another PersistentVolume for it, to which a claim may be bound.
func TestVolumeOfAnother(t *testing.T) {
	for words, deleted := range map[string]int{
		"b:bound:other": 0, "b:available:other": 0, "b:available:deleting": 1, "b:bound:deleting": 0,
		"b:binding:deleting": 0, "b:released:deleting": 1,
	} {
		a, b := described(t, stored(), "a:available:deleting")[0], described(t, stored(), words)[0]
		r, driver := bench(t, interceptor.Funcs{}, a, b)
		remove := removing(r, driver, time.Minute)
		request := ctrl.Request{NamespacedName: types.NamespacedName{Name: "a"}}
		if _, err := remove.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		err := r.client.Get(t.Context(), client.ObjectKeyFromObject(a), a)
		if client.IgnoreNotFound(err) != nil || err == nil || driver.deleted != deleted {
			t.Errorf("beside %s %d volumes are deleted, want %d; its PersistentVolume is there: %t",
				words, driver.deleted, deleted, err == nil)
		}
	}
}
