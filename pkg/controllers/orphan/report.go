package orphan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/printable"
)

type metrics struct {
	differences                  *prometheus.GaugeVec
	repairs, deletions, failures prometheus.Counter
}

func newMetrics(driver string) *metrics {
	labels := prometheus.Labels{"driver": driver}
	return &metrics{
		differences: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stowage_orphans", ConstLabels: labels,
			Help: "Differences between the driver's storage and Kubernetes, by kind, as the last sweep has confirmed them.",
		}, []string{"kind"}),
		repairs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stowage_orphan_repairs_total", ConstLabels: labels,
			Help: "Dangling attachments that were given to csi-attacher to detach.",
		}),
		deletions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stowage_orphan_deletions_total", ConstLabels: labels,
			Help: "Leaked volumes that were deleted.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stowage_orphan_failures_total", ConstLabels: labels,
			Help: "Sweeps that could not compare the driver's storage with Kubernetes, or repair what they found.",
		}),
	}
}

func (m *metrics) register(registry prometheus.Registerer) error {
	return errors.Join(registry.Register(m.differences), registry.Register(m.repairs), registry.Register(m.deletions),
		registry.Register(m.failures))
}

// report counts the confirmed differences, and reports each once while it lasts.
func (s *sweeper) report(ctx context.Context, confirmed []difference) {
	count, told := map[kind]int{}, make(map[difference]bool, len(confirmed))
	for _, d := range confirmed {
		count[d.kind]++
		told[d] = true
		if !s.told[d] {
			s.tell(ctx, d)
		}
	}
	for _, k := range kinds() {
		s.metrics.differences.WithLabelValues(string(k)).Set(float64(count[k]))
	}
	s.told = told
}

// tell logs a difference and records it as an event of the object that an operator would look at.
func (s *sweeper) tell(ctx context.Context, d difference) {
	reason, sentence := d.describe(s.DeleteAfter)
	s.Log.Warn(sentence, "kind", d.kind, "volume", d.handle, "node", d.node, "object", d.object)
	s.say(ctx, d, corev1.EventTypeWarning, reason, "Compare", sentence)
}

// say records an event. Parts of its text come from the driver and from the authors of PersistentVolumes.
func (s *sweeper) say(ctx context.Context, d difference, kind, reason, action, sentence string) {
	s.events.Eventf(s.subject(ctx, d), nil, kind, reason, action, "%s", printable.Event(sentence))
}

// describe returns an event's reason and a sentence for a difference. A leaked volume is deleted after deleteAfter,
// unless that is 0.
func (d difference) describe(deleteAfter time.Duration) (reason, sentence string) {
	switch d.kind {
	case leaked:
		what := "it is kept. Write a PersistentVolume for it, or delete it at the storage"
		if deleteAfter > 0 {
			what = fmt.Sprintf("it is deleted once that has been so for %s, unless leaked volumes are many. Write a "+
				"PersistentVolume for it to keep it", deleteAfter)
		}
		return "VolumeWithoutPersistentVolume",
			fmt.Sprintf("no PersistentVolume names the volume %q of the storage: %s", d.handle, what)
	case missing:
		return "VolumeMissing", fmt.Sprintf("the storage has no volume %q, which this PersistentVolume names", d.handle)
	case dangling:
		return "AttachedWithoutVolumeAttachment", fmt.Sprintf("volume %q is attached to node %s without a VolumeAttachment",
			d.handle, d.node)
	case foreign:
		return "AttachedElsewhere", fmt.Sprintf("volume %q is attached to %q, which is no node that runs the driver: "+
			"no node can use it until it is detached there", d.handle, d.node)
	case stranded:
		return "AttachedWithoutPersistentVolume", fmt.Sprintf("volume %q is attached to node %s, and the PersistentVolume "+
			"of this VolumeAttachment is gone, so that csi-attacher cannot detach it: write a PersistentVolume of that name "+
			"and volume, or detach it at the storage and remove the finalizers here", d.handle, d.node)
	case unattached:
	}
	return "NotAttached",
		fmt.Sprintf("volume %q is not attached to node %s, though this VolumeAttachment says that it is: "+
			"csi-attacher attaches it again", d.handle, d.node)
}

// subject returns the object of an event: the difference's own object, else the driver.
func (s *sweeper) subject(ctx context.Context, d difference) runtime.Object {
	var object client.Object
	switch {
	case d.object == "":
	case d.kind == unattached, d.kind == stranded:
		object = &storagev1.VolumeAttachment{}
	default:
		object = &corev1.PersistentVolume{}
	}
	if object != nil && s.cache.Get(ctx, client.ObjectKey{Name: d.object}, object) == nil {
		return object
	}
	return &storagev1.CSIDriver{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "CSIDriver"},
		ObjectMeta: metav1.ObjectMeta{Name: s.Driver.Driver()},
	}
}
