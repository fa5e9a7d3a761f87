package failover

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
)

// TestSeries checks that deploy/observability lists the exported series.
func TestSeries(t *testing.T) {
	m, registry := newMetrics("d"), prometheus.NewRegistry()
	if err := m.register(registry); err != nil {
		t.Fatal(err)
	}
	m.count(map[string]int{})
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
	all := strings.Split(string(text), "\n")
	if listed := slices.DeleteFunc(slices.Clone(all),
		func(l string) bool { return !strings.HasPrefix(l, "stowage_failover") }); !slices.Equal(lines, listed) {
		t.Errorf("exported are %q and listed are %q", lines, listed)
	}
	if values := "values node_state: " + strings.Join(states(), "|"); !slices.Contains(all, values) {
		t.Errorf("not listed: %s", values)
	}
}

// TestEventsFit checks that an event with a long text is cut to the API server's limit.
func TestEventsFit(t *testing.T) {
	s := newScene(t)
	s.announce(s.node(), corev1.EventTypeNormal, "InService", "%s", strings.Repeat("ä", 4000))
	if event := <-s.recorder.Events; len(event) > 1024 || !strings.HasSuffix(event, "ä") {
		t.Errorf("the event has %d bytes", len(event))
	}
}
