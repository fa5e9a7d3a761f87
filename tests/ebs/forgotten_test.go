package ebs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/iam"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// tightened adds the condition on instances from docs/guides/ebs.md to the shipped policy.
func tightened(t *testing.T, r *region.Region) func(*ebs.Config) {
	return func(c *ebs.Config) {
		p := policyOf(t, "controller", "*")
		for i := range p.Statement {
			if s := &p.Statement[i]; s.Sid == "AttachToInstances" {
				s.Condition = map[string]map[string]iam.Texts{
					"StringEquals": {"ec2:ResourceTag/eks:cluster-name": {"production"}}}
			} else {
				s.Condition = nil // The other guard checks it.
			}
		}
		c.AWS.HTTPClient = &iam.Guard{Policy: p, Tags: tagsIn(r), Next: c.AWS.HTTPClient}
	}
}

// TestWhatAForgottenInstanceHadIsDetached makes EC2 forget an instance while the policy depends on its tags. EC2 then
// reports that detaching the instance's volumes is forbidden.
func TestWhatAForgottenInstanceHadIsDetached(t *testing.T) {
	for name, row := range map[string]struct {
		other, every bool // by a process that has not attached it; from every node
		gone         bool // the volume is gone as well
		fault        faults.Kind
		want         backends.Kind
	}{
		"by the process that has attached it": {},
		"by another one":                      {other: true},
		"from every node":                     {every: true},
		"a volume that is gone":               {gone: true, want: backends.NotFound},
		"by one that EC2 does not answer":     {fault: faults.LoseRequest, want: backends.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := region.New(t, region.Quick(), 0)
				f, v, node := attachedToForgotten(t, r)
				if row.other {
					f = ruled(t, r, tightened(t, r))
				}
				if row.gone {
					if err := ruled(t, r).Delete(t.Context(), v); err != nil {
						t.Fatal(err)
					}
					<-time.After(time.Minute)
				}
				if row.every {
					node = ""
				}
				if row.fault != faults.None {
					r.Proxy.Script(faults.Rule{Action: "CreateTags", Kind: row.fault})
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := f.Attach.Detach(ctx, v, node)
				if err != nil && row.want == 0 || row.want != 0 && !backends.Is(err, row.want) {
					t.Errorf("detached with %v, want %v", err, row.want)
				}
			})
		})
	}
}

// attachedToForgotten creates a volume that was attached to an instance that EC2 has forgotten.
func attachedToForgotten(t *testing.T, r *region.Region) (f controller, volume, node string) {
	t.Helper()
	node = r.Server.NewInstanceID()
	r.Server.AddInstance(ec2.Instance{ID: node, Type: "m5.tiny", Zone: "region-1a",
		Tags: map[string]string{"eks:cluster-name": "production"}})
	f = ruled(t, r, tightened(t, r))
	v, err := f.Create(t.Context(), region.Spec("v"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Attach.Attach(t.Context(), region.Request(v.Handle, node)); err != nil {
		t.Fatal(err)
	}
	r.Server.SetPower(node, "terminated")
	<-time.After(2 * time.Hour)
	r.Server.Forget(node)
	return f, v.Handle, node
}

// TestForbiddenDetachmentStaysSo uses a policy that forbids to detach volumes of another cluster's instance.
func TestForbiddenDetachmentStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := region.New(t, region.Quick(), 0)
		f := ruled(t, r)
		v, err := f.Create(t.Context(), region.Spec("v"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeA)); err != nil {
			t.Fatal(err)
		}
		err = ruled(t, r, tightened(t, r)).Attach.Detach(t.Context(), v.Handle, region.NodeA)
		if !backends.Is(err, backends.Denied) || len(r.Server.Volumes()[0].Instances) != 1 {
			t.Errorf("detached with %v, want Denied; it is %+v", err, r.Server.Volumes()[0])
		}
	})
}
