package binder

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// times measures how long claims wait, by this process's own clock, from the event of a claim's creation to the event
// of its binding. Claims that are older than the process and claims of scrubs are not measured.
type times struct {
	waited *prometheus.HistogramVec

	mu    sync.Mutex
	spans map[types.NamespacedName]span
}

// span holds the times of a claim.
type span struct {
	claim        types.UID
	begun, bound time.Time
}

func newTimes(driver string, registry prometheus.Registerer) (*times, error) {
	t := &times{spans: map[types.NamespacedName]span{}, waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "stowage_claim_bound_seconds", ConstLabels: prometheus.Labels{"driver": driver},
		Help: "Time from the creation of a claim, whose class has a PersistentVolumeSet, until it was bound: to a " +
			"volume that was ready, or to any other.",
		Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
	}, []string{"volume"})}
	return t, registry.Register(t.waited)
}

// handler records the times. It enqueues nothing.
func (t *times) handler() handler.EventHandler {
	return handlers{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], _ queue) {
			t.created(e.Object, e.IsInInitialList)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], _ queue) { t.updated(e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], _ queue) {
			t.forget(client.ObjectKeyFromObject(e.Object))
		},
	}
}

func (t *times) created(object client.Object, wasThere bool) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || wasThere || claim.Status.Phase == corev1.ClaimBound {
		return
	}
	if _, isScrubs := claim.Labels[v1alpha1.RecyclingAnnotation]; isScrubs {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans[client.ObjectKeyFromObject(claim)] = span{claim: claim.UID, begun: time.Now()}
}

func (t *times) updated(object client.Object) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Status.Phase != corev1.ClaimBound {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := client.ObjectKeyFromObject(claim)
	if s, known := t.spans[key]; known && s.bound.IsZero() {
		s.bound = time.Now()
		t.spans[key] = s
	}
}

func (t *times) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.spans, key)
}

// observe counts a bound claim once. A claim of a class without a set is forgotten.
func (t *times) observe(v *view) {
	if v.claim.Status.Phase != corev1.ClaimBound {
		return
	}
	key := client.ObjectKeyFromObject(v.claim)
	t.mu.Lock()
	s, known := t.spans[key]
	delete(t.spans, key)
	t.mu.Unlock()
	if !known || s.bound.IsZero() || s.claim != v.claim.UID || !v.pooled || v.class.Provisioner != v.driver {
		return
	}
	kind := "other"
	for _, one := range v.named {
		if one.Name == v.claim.Spec.VolumeName && one.Annotations[v1alpha1.VolumeSetAnnotation] != "" {
			kind = "ready"
		}
	}
	t.waited.WithLabelValues(kind).Observe(s.bound.Sub(s.begun).Seconds())
}
