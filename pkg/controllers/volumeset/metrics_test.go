package volumeset

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// counted returns a reconciler and a function for its exported values, by the series' name and label values.
func counted(t *testing.T) (*reconciler, func() map[string]float64, *prometheus.Registry) {
	t.Helper()
	r, _ := bench(t, interceptor.Funcs{}, stored(), fast())
	registry := prometheus.NewRegistry()
	if err := r.metrics.register(registry); err != nil {
		t.Fatal(err)
	}
	return r, func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]float64{}
		for _, family := range families {
			for _, one := range family.GetMetric() {
				key := family.GetName()
				for _, label := range one.GetLabel() {
					key += " " + label.GetValue()
				}
				all[key] = one.GetGauge().GetValue() + one.GetCounter().GetValue()
			}
		}
		return all
	}, registry
}

// TestMetricsOfSet checks the metrics of a set, before and after its deletion.
func TestMetricsOfSet(t *testing.T) {
	r, values, _ := counted(t)
	set := r.look(t)
	want := map[string]float64{
		"stowage_volumeset_volumes driver set bound": 0, "stowage_volumeset_volumes driver set unbound": 0,
		"stowage_volumeset_volumes driver set creating": float64(set.Status.CreatingReplicas),
		"stowage_volumeset_volumes driver set deleting": 0,
		"stowage_volumeset_minimum driver set":          float64(set.Spec.MinimumReplicas),
	}
	if got := values(); set.Status.CreatingReplicas == 0 || !maps.Equal(got, want) {
		t.Errorf("exported are %v, want %v", got, want)
	}
	if err := r.client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if set = r.look(t); set.Name != "" {
		t.Errorf("of the set that was deleted there is %+v", set.Status)
	}
	r.look(t)
	if got := values(); len(got) > 0 {
		t.Errorf("of a set that is gone, %v is left", got)
	}
}

// TestMetricsOfClaims checks which volumes count as ready when they become bound.
func TestMetricsOfClaims(t *testing.T) {
	r, values, _ := counted(t)
	h := r.metrics.bound("driver", r.setsOfClassNamed)
	volume := func(class, set string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v",
			Annotations: map[string]string{v1alpha1.VolumeSetAnnotation: set}}}
		v.Spec.StorageClassName, v.Status.Phase = class, phase
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "driver"}
		return v
	}
	class := stored().Spec.Template.Spec.StorageClassName
	for _, one := range []struct {
		class, set    string
		before, after corev1.PersistentVolumePhase
	}{
		{class, "uid", corev1.VolumeAvailable, corev1.VolumeBound},
		{class, "", corev1.VolumePending, corev1.VolumeBound},
		{class, "uid", corev1.VolumeBound, corev1.VolumeBound},
		{class, "uid", corev1.VolumeBound, corev1.VolumeReleased},
		{"another", "uid", corev1.VolumeAvailable, corev1.VolumeBound},
	} {
		h.Update(t.Context(), event.UpdateEvent{
			ObjectOld: volume(one.class, one.set, one.before), ObjectNew: volume(one.class, one.set, one.after),
		}, nil)
	}
	released, scrubbed := volume(class, "uid", corev1.VolumeReleased), volume(class, "uid", corev1.VolumeBound)
	scrubbed.Annotations[v1alpha1.RecyclingAnnotation] = `{"name":"scrub"}`
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: released, ObjectNew: scrubbed}, nil)
	noted := volume("another", "uid", corev1.VolumeAvailable)
	noted.Annotations[corev1.BetaStorageClassAnnotation] = class
	bound := noted.DeepCopy()
	bound.Status.Phase = corev1.VolumeBound
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: noted, ObjectNew: bound}, nil)
	prefix := "stowage_volumeset_claims_total " + class + " driver "
	if got, want := values(),
		map[string]float64{prefix + volumeReady: 2, prefix + volumeOther: 1}; !maps.Equal(got, want) {
		t.Errorf("exported are %v, want %v", got, want)
	}
}

// TestSeries checks that deploy/observability lists the exported series.
func TestSeries(t *testing.T) {
	r, _, registry := counted(t)
	r.metrics.count(stored())
	r.metrics.claims.WithLabelValues("class", volumeReady).Inc()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		line := family.GetName()
		for _, label := range family.GetMetric()[0].GetLabel() {
			line += " " + label.GetName()
		}
		lines = append(lines, line)
	}
	text, err := os.ReadFile("../../../deploy/observability/manager-series.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := slices.DeleteFunc(strings.Split(string(text), "\n"),
		func(line string) bool { return !strings.HasPrefix(line, "stowage_volumeset") })
	if !slices.Equal(lines, listed) {
		t.Errorf("exported are %q and listed are %q", lines, listed)
	}
}
