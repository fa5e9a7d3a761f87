package recycler

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMetrics checks the counts of scrubs and the longest wait, and that deploy/observability lists the exported
// series.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry, "driver", "driver")
	if err != nil {
		t.Fatal(err)
	}
	v, start := begun(scrubbing), time.Unix(0, 0)
	v.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{
			StartedAt: metav1.NewTime(start), FinishedAt: metav1.NewTime(start.Add(5 * time.Second)),
		},
	}}}
	m.waits.note("v", "driver", true)
	m.waits.note("other", "other", true)
	m.waits.note("done", "driver", true)
	m.waits.note("done", "driver", false)
	for _, one := range []step{begin, point, passed, passed, broke, giveUp} {
		m.count(v, one)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	listed, err := os.ReadFile("../../../deploy/observability/manager-series.txt")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName())
			}
			name := family.GetName()
			switch h := metric.GetHistogram(); {
			case h != nil:
				name += "_sum"
				counts["seconds"] = h.GetSampleSum()
			case metric.GetGauge() != nil:
				counts["waits"] = metric.GetGauge().GetValue()
			default:
				counts[metric.GetLabel()[1].GetValue()] = metric.GetCounter().GetValue()
			}
			if line := name + " " + strings.Join(labels, " "); !slices.Contains(strings.Split(string(listed), "\n"), line) {
				t.Errorf("manager-series.txt lacks %q", line)
			}
		}
	}
	if len(counts) != 5 || counts["waits"] <= 0 || counts["seconds"] != 10 || counts["clean"] != 2 ||
		counts["failed"] != 1 || counts["given_up"] != 1 {
		t.Errorf("counted are %v", counts)
	}
}
