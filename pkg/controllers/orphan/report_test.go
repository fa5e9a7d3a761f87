package orphan

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestSeries checks that deploy/observability lists the exported series.
func TestSeries(t *testing.T) {
	m, registry := newMetrics("d"), prometheus.NewRegistry()
	if err := m.register(registry); err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, k := range kinds() {
		m.differences.WithLabelValues(string(k))
		values = append(values, string(k))
	}
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
	listed := slices.DeleteFunc(slices.Clone(all), func(l string) bool { return !strings.HasPrefix(l, "stowage_orphan") })
	if !slices.Equal(lines, listed) {
		t.Errorf("exported are %q and listed are %q", lines, listed)
	}
	if line := "values kind: " + strings.Join(values, "|"); !slices.Contains(all, line) {
		t.Errorf("not listed: %s", line)
	}
}
