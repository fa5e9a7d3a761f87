package recycler

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/printable"
)

const (
	pause   = 3 * time.Second        // between two checks of a volume that is being recycled
	longest = time.Minute            // maximum between two checks of a volume that waits
	soon    = 100 * time.Millisecond // after a step
	retry   = 30 * time.Second       // before the second scrub of a volume, doubled for each later one
	slack   = 10 * time.Minute       // for a scrub pod to start
	course  = time.Minute            // how long a scrub waits without an event
	doubled = 7                      // maximum number of doublings

	// unhurried divides the time that a volume has waited for the same condition: the quotient is the pause until the next
	// check.
	unhurried = 8
)

// reconciler recycles volumes. Decisions about data are based on live reads.
type reconciler struct {
	Options
	cache   client.Reader
	live    client.Reader
	write   client.Client
	events  events.EventRecorder
	memory  *memory
	recent  recent
	metrics *metrics
	newName func() string // unique name of a scrub
}

// Reconcile takes one step with one volume.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	volume := &corev1.PersistentVolume{}
	err := r.live.Get(ctx, request.NamespacedName, volume)
	if apierrors.IsNotFound(err) || err == nil && !r.isOurs(volume) {
		r.memory.forget(request.Name)
		r.metrics.waits.note(request.Name, "", false)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	v, next, why, err := r.decide(ctx, volume)
	if err != nil {
		return ctrl.Result{}, err
	}
	waited := r.memory.waits(volume.Name, next, why)
	r.metrics.waits.note(volume.Name, v1alpha1.RecycledDriver(volume), next == wait && why == v.users.of(volume))
	r.tell(v, next, why, waited)
	err = r.take(ctx, v, next, why)
	r.complain(v, next, err)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: pause}, nil // Another writer was faster: read again.
	}
	switch next {
	case nothing, refuse:
		return ctrl.Result{}, err
	case wait, work:
		return ctrl.Result{RequeueAfter: min(max(pause, waited/unhurried), longest)}, err
	default:
		return ctrl.Result{RequeueAfter: soon}, err
	}
}

// isOurs reports whether this recycler handles a volume.
func (r *reconciler) isOurs(v *corev1.PersistentVolume) bool {
	return concerns(v) && slices.Contains(r.Drivers, v1alpha1.RecycledDriver(v))
}

// decide reads the objects and plans a step, taking the time into account.
func (r *reconciler) decide(ctx context.Context,
	volume *corev1.PersistentVolume) (v view, next step, why string, err error) {
	one, unreadable := readRecord(volume)
	if unreadable != nil {
		return view{volume: volume}, refuse, unreadable.Error(), nil //nolint:nilerr // The volume's event tells of it.
	}
	if v, err = r.look(ctx, view{volume: volume, record: one, attempts: r.Attempts}); err != nil {
		return v, nothing, "", err
	}
	if next, why = plan(v); dependsOnUsers(next) {
		if v.users, err = r.readUsers(ctx, v.volume, next); err != nil {
			return v, nothing, "", err
		}
		next, why = plan(v)
	}
	next, why = r.pace(v, next, why)
	return v, next, why, nil
}

// look reads all data for a decision except the volume's users. The claim is read before the pod: without a claim, a
// pod cannot have started since.
func (r *reconciler) look(ctx context.Context, v view) (view, error) {
	var err error
	if v.record != nil {
		if v.claim, err = find(ctx, r.live, r.Namespace, v.record.Name, &corev1.PersistentVolumeClaim{}); err != nil {
			return v, err
		}
		if v.pod, err = find(ctx, r.live, r.Namespace, v.record.Name, &corev1.Pod{}); err != nil {
			return v, err
		}
	}
	if isUnbound := v.volume.Spec.ClaimRef == nil; isUnbound || v.record != nil && v.record.State == clean {
		v.noted = r.isNoted(ctx, v.volume)
	}
	return v, nil
}

// find reads an object, or returns nil if it does not exist.
func find[T client.Object](ctx context.Context, from client.Reader, namespace, name string, into T) (T, error) {
	var none T
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return into, nil
}

// pace delays a step until it is due, and fails a scrub that takes too long. A scrub that has not begun to take the
// volume waits without a limit: a node may stay silent for long, and that is no failure of the scrub.
func (r *reconciler) pace(v view, next step, why string) (step, string) {
	name := v.volume.Name
	switch {
	case next == wait && v.record == nil:
		r.memory.reset(name, unused(v.volume)) // The volume is in use: its delay starts again.
	case next == begin && v.record == nil:
		if r.memory.since(name, unused(v.volume)) < r.Delay {
			return wait, "the volume has just been released"
		}
	case next == begin:
		if r.memory.since(name, "failed "+v.record.Name) < retry<<min(max(v.record.Failures-1, 0), doubled) {
			return wait, "the last scrub failed a moment ago: " + v.record.Message
		}
	case (next == wait || next == work) && v.isPointed() && v.record.State == scrubbing:
		if r.memory.since(name, "scrub "+v.record.Name) > r.Deadline+slack {
			return broke, "the scrub took longer than " + (r.Deadline + slack).String() + ": " + why
		}
	}
	return next, why
}

// unused returns the key for the time since which a volume has not been used. Each claim of the volume has its own key.
func unused(v *corev1.PersistentVolume) string { return "unused since " + string(v.Spec.ClaimRef.UID) }

// tell records an event that says why a volume waits or is refused, and repeats it now and then. The normal waits of a
// scrub are short, and are reported only after some time: the report of its node is one of them. Its text comes from
// the node and may change with each look, so the time counts from the first report or the last event.
func (r *reconciler) tell(v view, next step, why string, waited time.Duration) {
	isReport, unreported := next == wait && why == v.users.unreported(v.volume), "unreported "+v.users.reports.question
	if isReport {
		waited = r.memory.since(v.volume.Name, unreported)
	}
	isCourse := next == wait && waited < course && (v.isPointed() || isReport)
	if next != refuse && next != wait || isCourse || !r.memory.isNew(v.volume.Name, why) {
		return
	}
	kind, reason := corev1.EventTypeNormal, v1alpha1.RecycleWaits
	if next == refuse {
		kind, reason = corev1.EventTypeWarning, v1alpha1.RecycleRefused
	}
	r.memory.reset(v.volume.Name, unreported)
	r.say(v, kind, reason, why)
}

// complain records an event if the API server refused an object for a volume. A scrub cannot begin because its
// namespace is gone or does not admit the claim or pod, or the volume cannot be given back.
func (r *reconciler) complain(v view, next step, cause error) {
	var reason, text string
	switch {
	case cause == nil || apierrors.IsAlreadyExists(cause) || apierrors.IsConflict(cause):
		return // Nothing failed, or another writer was faster.
	case next == makeClaim, next == makePod:
		reason, text = v1alpha1.ScrubRefused, fmt.Sprintf("the scrub cannot begin: its claim and pod are made in the "+
			"namespace %s, and the API server says: %s", r.Namespace, cause)
	case next == noteClass:
		reason, text = v1alpha1.ClassNotNoted, r.notNoted(v.volume, cause)
	default:
		return
	}
	if r.memory.isNew(v.volume.Name, text) {
		r.say(v, corev1.EventTypeWarning, reason, text)
	}
}

// say records an event of the volume. Parts of its text come from pods, nodes and people.
func (r *reconciler) say(v view, kind, reason, text string) {
	r.events.Eventf(v.volume, nil, kind, reason, "Recycle", "%s", printable.Event(text))
}
