package volumeset

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// unprovenPause is how long no volume is created after the API server failed to tell whether it would accept a
// PersistentVolume.
const unprovenPause = 10 * time.Second

// conclude finds the slots to remove: those that were given up, and those whose PersistentVolume this manager has
// created or seen by a live read, even if it is gone. The cache alone proves nothing: it may show a PersistentVolume
// that is gone and whose slot has been requested again.
func (r *reconciler) conclude(ctx context.Context, o *round) error {
	for _, slot := range o.set.Status.Slots {
		if slot.Manager != r.filler.identity {
			continue
		}
		switch p := r.filler.progressOf(slotKey{set: o.set.Name, slot: slot.Name}); {
		case p.withdrawn:
			o.end(slot.Name)
		case !p.made:
		case o.census.listed[slot.Name]:
			o.ended[slot.Name] = true
		default:
			counts, err := r.counts(ctx, o.set, slot.Name)
			if err != nil {
				return err
			}
			if !counts {
				o.end(slot.Name)
			}
		}
	}
	return nil
}

// end removes a slot whose volume does not count in the set.
func (o *round) end(name string) {
	if o.ended[name] {
		return
	}
	o.ended[name] = true
	delete(o.census.expected, name)
	if !o.census.listed[name] {
		o.census.slots, o.census.total = o.census.slots-1, o.census.total-1
	}
}

// counts reports whether a PersistentVolume that has been made and was not in the list counts in the set. One that the
// list is too old for does: its labels say so. One that has been relabelled does not, nor one that is gone again.
func (r *reconciler) counts(ctx context.Context, set *v1alpha1.PersistentVolumeSet, name string) (bool, error) {
	v := &corev1.PersistentVolume{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, v)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return selector(set).Matches(labels.Set(v.Labels)), nil
}

// prove asks the API server whether it would accept the PersistentVolumes of new slots, before a slot is written. A
// volume whose object is always refused could neither be bound to a claim nor be given up. It also checks that the API
// server would not alter them. Without the API server's consent no volume is created, and all other work continues.
func (r *reconciler) prove(ctx context.Context, o *round) {
	if o.actions.create == 0 {
		return
	}
	now := r.now()
	known := r.refusalOf(o, now)
	if known == nil {
		// No object is created with this name. A random name would change the condition with each refusal.
		name := "pvs-" + string(o.set.UID)
		asked := csiclient.Volume{Handle: name, SizeBytes: o.order.Template.Spec.Capacity.Value()}
		answer := persistentVolume(r.driver.Driver(), o.set, name, o.order, asked)
		err := r.client.Create(ctx, answer, client.DryRunAll)
		if err == nil {
			err = unaltered(o.set, answer)
		}
		if known = r.noteRefusal(o, now, err); known == nil {
			return
		}
	}
	o.problem, o.wait = known.problem, known.until.Sub(now)
	o.actions.create, o.sites = 0, nil
}

// refusal records that the API server would not accept the PersistentVolumes of an order. It is valid for a while,
// because writing it into the status causes an event that reconciles the set again.
type refusal struct {
	order   string
	until   time.Time
	problem verdict
}

// refusalOf returns the valid refusal of the order of new volumes, or nil if the API server must be asked.
func (r *reconciler) refusalOf(o *round, now time.Time) *refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.refusals[o.set.Name]; known != nil && known.order == o.order.Name && known.until.After(now) {
		return known
	}
	return nil
}

func (r *reconciler) forgetRefusal(set string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.refusals, set)
}

// noteRefusal notes the API server's answer to the order of new volumes, and returns nil if it would accept them.
func (r *reconciler) noteRefusal(o *round, now time.Time, err error) *refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := &refusal{order: o.order.Name}
	switch {
	case err == nil:
		delete(r.refusals, o.set.Name)
		return nil
	case errors.Is(err, errAltered):
		known.problem, known.until = verdict{reasonAltered, err.Error()}, now.Add(lastPause)
	case refusesTemplate(err):
		says := "the API server refuses a PersistentVolume of this template: " + err.Error()
		known.problem = verdict{reasonTemplate, says}
		known.until = now.Add(lastPause)
	default: // For example, a webhook failed, or knows no dry run.
		says := "the API server does not say whether it would take a PersistentVolume of this template: " + err.Error()
		known.problem = verdict{reasonUnproven, says}
		known.until = now.Add(unprovenPause)
	}
	r.refusals[o.set.Name] = known
	return known
}

// refusesTemplate reports whether the API server's answer to a dry run is about the template. The denial of a webhook
// has the code 400 and no reason, unless the webhook names others. The API server gives the reason BadRequest if a
// webhook knows no dry run (k8s.io/apiserver, NewDryRunUnsupportedErr). A denial with that reason differs from this
// only in its text, and counts as no answer too.
func refusesTemplate(err error) bool {
	if apierrors.ReasonForError(err) == metav1.StatusReasonBadRequest {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}
