package binder

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

func ofASet(v *pv) { v.Annotations[v1alpha1.VolumeSetAnnotation] = "set-uid" }

// exported returns the exported numbers of claims by the kind of their volumes.
func (w *world) exported() map[string]uint64 {
	w.Helper()
	registry := prometheus.NewRegistry()
	w.must(registry.Register(w.binder.times.waited))
	families, err := registry.Gather()
	w.must(err)
	all := map[string]uint64{}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			for _, label := range one.GetLabel() {
				if label.GetName() == "volume" {
					all[label.GetValue()] += one.GetHistogram().GetSampleCount()
				}
			}
		}
	}
	return all
}

// TestTimes checks which claims are measured, once each, and with which label.
func TestTimes(t *testing.T) {
	tests := map[string]struct {
		volume   *pv
		wasThere bool
		class    string
		want     string
	}{
		"a volume of a set": {newVolume("v", named("c-uid"), ofASet, phase(corev1.VolumeBound)), false, "fast",
			"ready"},
		"a volume of its own":        {newVolume("v", named("c-uid"), phase(corev1.VolumeBound)), false, "fast", "other"},
		"there before this process":  {newVolume("v", named("c-uid"), ofASet, phase(corev1.VolumeBound)), true, "fast", ""},
		"of a class without any set": {newVolume("v", named("c-uid"), phase(corev1.VolumeBound)), false, "slow", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inClass := func(c *pvc) { c.Spec.StorageClassName = &test.class }
			w := newWorld(t, newClaim(boundTo("v"), isBound, inClass), test.volume)
			h := w.binder.times.handler()
			h.Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: newClaim(inClass),
				IsInInitialList: test.wasThere}, nil)
			for range 2 {
				h.Update(t.Context(), event.TypedUpdateEvent[client.Object]{ObjectNew: w.claim("c")}, nil)
				w.must(w.look("c"))
			}
			if len(w.binder.times.spans) > 0 {
				t.Errorf("the claim is remembered: %v", w.binder.times.spans)
			}
			got := w.exported()
			if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || got[test.want] != 1) {
				t.Errorf("counted are %v, want one of %q", got, test.want)
			}
		})
	}
}

// TestTimesOfScrubs checks that the claim of a scrub is not measured: nobody waits for it.
func TestTimesOfScrubs(t *testing.T) {
	w := newWorld(t)
	scrub := newClaim(func(c *pvc) { c.Labels = map[string]string{v1alpha1.RecyclingAnnotation: "v-uid"} })
	w.binder.times.handler().Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: scrub}, nil)
	if len(w.binder.times.spans) > 0 {
		t.Errorf("the claim of a scrub is remembered: %v", w.binder.times.spans)
	}
}

// TestTimesOfDeleted checks that a claim that is deleted unbound is forgotten.
func TestTimesOfDeleted(t *testing.T) {
	w := newWorld(t)
	h := w.binder.times.handler()
	h.Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: newClaim()}, nil)
	if len(w.binder.times.spans) != 1 {
		t.Error("the claim is not remembered")
	}
	h.Delete(t.Context(), event.TypedDeleteEvent[client.Object]{Object: newClaim()}, nil)
	if len(w.binder.times.spans) > 0 {
		t.Errorf("the claim is remembered: %v", w.binder.times.spans)
	}
}

// TestSeries checks that deploy/observability lists the exported series.
func TestSeries(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/observability/manager-series.txt")
	if err != nil {
		t.Fatal(err)
	}
	desc := make(chan *prometheus.Desc, 1)
	newWorld(t).binder.times.waited.Describe(desc)
	name := (<-desc).String()
	if !strings.Contains(name, `"stowage_claim_bound_seconds"`) ||
		!strings.Contains(string(text), "\nstowage_claim_bound_seconds_count driver volume\n") {
		t.Errorf("exported is %s and the list is\n%s", name, text)
	}
}
