package nfsdriver

import (
	"testing"

	"github.com/stowage-csi/stowage/tests/inprocess"
)

// gauge returns the value of one of a driver's metrics.
func gauge(t *testing.T, driver *inprocess.Driver, name string) float64 {
	t.Helper()
	families, err := driver.Metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
