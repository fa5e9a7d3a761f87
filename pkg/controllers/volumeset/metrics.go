package volumeset

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	storage "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// Values of the labels state and volume.
const (
	stateBound    = "bound"
	stateUnbound  = "unbound"
	stateCreating = "creating"
	stateDeleting = "deleting"

	volumeReady = "ready" // a set had created it before
	volumeOther = "other" // usually created for the claim
)

// metrics holds the manager's metrics. Only the leader updates them.
type metrics struct {
	volumes *prometheus.GaugeVec
	minimum *prometheus.GaugeVec
	claims  *prometheus.CounterVec
}

func newMetrics(driver string) *metrics {
	labels := prometheus.Labels{"driver": driver}
	return &metrics{
		volumes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stowage_volumeset_volumes", Help: "Volumes of a PersistentVolumeSet, by state.", ConstLabels: labels,
		}, []string{"set", "state"}),
		minimum: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stowage_volumeset_minimum", Help: "Unbound volumes that a PersistentVolumeSet is to keep ready.",
			ConstLabels: labels,
		}, []string{"set"}),
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stowage_volumeset_claims_total", ConstLabels: labels,
			Help: "Claims of classes with a PersistentVolumeSet that were bound: to a volume of a set that was ready, or to " +
				"any other.",
		}, []string{"class", "volume"}),
	}
}

// register registers the metrics.
func (m *metrics) register(registry prometheus.Registerer) error {
	for _, one := range []prometheus.Collector{m.volumes, m.minimum, m.claims} {
		if err := registry.Register(one); err != nil {
			return err
		}
	}
	return nil
}

// count sets the metrics of a set from its status.
func (m *metrics) count(set *v1alpha1.PersistentVolumeSet) {
	s := set.Status
	for state, number := range map[string]int32{
		stateBound: s.BoundReplicas, stateUnbound: s.UnboundReplicas, stateCreating: s.CreatingReplicas,
		stateDeleting: s.DeletingReplicas,
	} {
		m.volumes.WithLabelValues(set.Name, state).Set(float64(number))
	}
	m.minimum.WithLabelValues(set.Name).Set(float64(set.Spec.MinimumReplicas))
}

// forget deletes the metrics of a set that is gone.
func (m *metrics) forget(set string) {
	m.volumes.DeletePartialMatch(prometheus.Labels{"set": set})
	m.minimum.DeletePartialMatch(prometheus.Labels{"set": set})
}

// bound counts claims as their volumes become bound, except claims of scrubs. It enqueues nothing.
func (m *metrics) bound(driver string,
	setsOfClass func(context.Context, string) []reconcile.Request) handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent,
		_ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		before, after := asVolume(e.ObjectOld), asVolume(e.ObjectNew)
		isNew := before.Status.Phase != corev1.VolumeBound && after.Status.Phase == corev1.VolumeBound
		_, isScrubs := after.Annotations[v1alpha1.RecyclingAnnotation]
		class := storage.GetPersistentVolumeClass(after)
		if !isNew || isScrubs || after.Spec.CSI == nil || after.Spec.CSI.Driver != driver ||
			len(setsOfClass(ctx, class)) == 0 {
			return
		}
		kind := volumeOther
		if after.Annotations[v1alpha1.VolumeSetAnnotation] != "" {
			kind = volumeReady
		}
		m.claims.WithLabelValues(class, kind).Inc()
	}}
}

// asVolume converts the object to a PersistentVolume. The handler watches no other kind.
func asVolume(object client.Object) *corev1.PersistentVolume {
	if v, ok := object.(*corev1.PersistentVolume); ok {
		return v
	}
	return &corev1.PersistentVolume{}
}
