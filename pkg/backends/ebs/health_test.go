package ebs_test

import (
	"testing"
	"testing/synctest"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

func TestWhatTheChecksOfEC2Say(t *testing.T) { synctest.Test(t, whatTheChecksOfEC2Say) }

func whatTheChecksOfEC2Say(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	for _, c := range []struct {
		check, result, event string
		status               backends.HealthStatus
		reason               string
	}{
		{"io-enabled", "failed", "", backends.Inaccessible, "IODisabled"},
		{"io-performance", "stalled", "", backends.Inaccessible, "IOStalled"},
		{"io-performance", "severely-degraded", "", backends.Degraded, "VolumeImpaired"},
		{"", "", "io-performance:degraded", backends.Degraded, "VolumeEvent"},
		{"", "", "", backends.Degraded, "VolumeImpaired"},
	} {
		v := d.make("pvc-" + c.reason + c.result)
		w.Server.Impair(v.Handle, c.check, c.result, c.event)
		issues, err := d.f.Health.Health(t.Context(), v.Handle)
		if err != nil || len(issues) != 1 || issues[0].Status != c.status || issues[0].Reason != c.reason {
			t.Errorf("%+v: got %+v, %v", c, issues, err)
		}
	}
}

// An unhealthy volume of another owner is not listed.
func TestOthersAreNotListedAsUnwell(t *testing.T) { synctest.Test(t, othersAreNotListedAsUnwell) }

func othersAreNotListedAsUnwell(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("pvc")
	w.Server.Impair(v.Handle, "io-enabled", "failed", "")
	other := open(t, w, func(c *ebs.Config) { c.ClusterID = "other" })
	if unwell, _, err := other.f.Health.ListHealth(t.Context(), backends.Page{}); err != nil || len(unwell) != 0 {
		t.Errorf("got %+v, %v; want none", unwell, err)
	}
	if unwell, _, err := d.f.Health.ListHealth(t.Context(), backends.Page{}); err != nil || len(unwell) != 1 ||
		unwell[0].Handle != v.Handle {
		t.Errorf("got %+v, %v; want %s", unwell, err, v.Handle)
	}
}
