package recycler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// randomLength makes equal names practically impossible.
const randomLength = 16

// Options of the recycler.
type Options struct {
	Drivers []string // whose volumes are recycled
	// the driver whose nodes report in LocalVolumes whether they use a volume; empty for none
	LocalDriver string
	Namespace   string // of the scrub claims and pods
	Image       string // of the scrub pods: the driver's image
	// how long a released volume is left alone, so that kubelets stop force-deleted pods
	Delay    time.Duration
	Deadline time.Duration // of a scrub pod
	Attempts int           // after which a volume becomes Failed
	Workers  int           // volumes that are handled concurrently
	Metrics  prometheus.Registerer
}

// Add adds the recycler to the controllers that m runs.
func Add(m ctrl.Manager, o Options) error {
	counts, err := newMetrics(o.Metrics, o.Drivers...)
	if err != nil {
		return err
	}
	r := &reconciler{
		Options: o, cache: m.GetClient(), live: m.GetAPIReader(), write: m.GetClient(),
		events: m.GetEventRecorder("stowage-recycler"),
		memory: newMemory(time.Now), metrics: counts, newName: func() string { return "scrub-" + rand.String(randomLength) },
	}
	if err := m.Add(manager.RunnableFunc(r.sweepAll)); err != nil {
		return err
	}
	isOurs := predicate.NewPredicateFuncs(func(object client.Object) bool { return concerns(object) })
	return ctrl.NewControllerManagedBy(m).Named("recycler").For(&corev1.PersistentVolume{},
		builder.WithPredicates(isOurs)).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers}).Complete(r)
}

// concerns reports whether a volume is to be recycled once it is released, or is being recycled.
func concerns(volume client.Object) bool {
	_, isBegun := volume.GetAnnotations()[v1alpha1.RecyclingAnnotation]
	return isBegun || volume.GetAnnotations()[v1alpha1.RecycleAnnotation] == "true"
}
