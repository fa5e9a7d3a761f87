package ebs_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestLatecomerHearsNoRefusalOfAnother requests a change while the request for another one, which EC2 refuses, is under
// way. EC2 has not seen the later change yet.
func TestLatecomerHearsNoRefusalOfAnother(t *testing.T) {
	const roots = 3 // root disks, of 8 GiB and 3000 iops
	grow := func(d driver, handle string) error {
		_, err := d.f.Expand.Expand(d.Context(), handle, backends.CapacityRange{RequiredBytes: 18 << 30})
		return err
	}
	change := func(iops int64) func(driver, string) error {
		return func(d driver, handle string) error {
			return d.f.Modify.Modify(d.Context(), handle, &ebs.Mutable{IOPS: &iops})
		}
	}
	for name, row := range map[string]struct {
		limit       func(c *fake.Config)
		first, late func(d driver, handle string) error
	}{
		"growing, while there is no room for iops": {
			func(c *fake.Config) { c.MaxIOPS = roots*3000 + 3500 }, change(4000), grow},
		"changing, while there is no room for a size": {
			func(c *fake.Config) { c.MaxGiB = roots*8 + 17 }, grow, change(4000)},
		"less of the same": {
			func(c *fake.Config) { c.MaxIOPS = roots*3000 + 3500 }, change(4000), change(3200)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := region.Quick()
				row.limit(&config)
				w := region.New(t, config, 0)
				d := open(t, w, nil)
				spec := region.Spec("one")
				spec.Capacity.RequiredBytes = 16 << 30
				v, err := d.Create(t.Context(), spec)
				if err != nil {
					t.Fatal(err)
				}
				w.Proxy.Script(faults.Rule{Action: "ModifyVolume", Times: 1, Kind: faults.Delay, Delay: time.Second})
				refused := make(chan error, 1)
				go func() { refused <- row.first(d, v.Handle) }()
				<-time.After(time.Second / 2) // The request has been sent.
				if err := row.late(d, v.Handle); !backends.Is(err, backends.Busy) {
					t.Errorf("whoever comes late hears %v, want Busy", err)
				}
				if err := <-refused; !backends.Is(err, backends.Exhausted) {
					t.Errorf("whoever was first hears %v, want Exhausted", err)
				}
				if err := row.late(d, v.Handle); err != nil {
					t.Errorf("asked again: %v", err)
				}
			})
		})
	}
}
