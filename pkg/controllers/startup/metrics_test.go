package startup

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestLongestWait checks that the longest wait only counts nodes that wait now.
func TestLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics("d")
		want := func(seconds float64) {
			t.Helper()
			if got := value(t, m.longest); got != seconds {
				t.Errorf("the longest wait is %v seconds, want %v", got, seconds)
			}
		}
		want(0)
		m.wait("a", true)
		<-time.After(time.Minute)
		m.wait("a", true) // Another reconciliation.
		m.wait("b", true)
		<-time.After(time.Minute)
		want(120)
		m.wait("a", false)
		want(60)
		m.wait("b", false)
		m.wait("a", true)
		want(0)
	})
}

func value(t *testing.T, metric prometheus.Collector) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(metric); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	one := families[0].GetMetric()[0]
	return one.GetCounter().GetValue() + one.GetGauge().GetValue() // The metric is either of them.
}

// TestSeries checks that deploy/observability lists the exported series.
func TestSeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := newMetrics("d").register(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		lines = append(lines, family.GetName()+" driver")
	}
	text, err := os.ReadFile("../../../deploy/observability/manager-series.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := slices.DeleteFunc(strings.Split(string(text), "\n"),
		func(l string) bool { return !strings.HasPrefix(l, "stowage_startup") })
	if !slices.Equal(lines, listed) {
		t.Errorf("exported are %q and listed are %q", lines, listed)
	}
}
