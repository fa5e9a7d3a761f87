package ebs_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestRefusalWithUnknownCode makes EC2 refuse a request with a code that the driver does not know. Such a request has
// no effect: the caller gets EC2's reason at once, and no later call waits for the request.
func TestRefusalWithUnknownCode(t *testing.T) {
	attach := func(d driver, v string) error {
		_, err := d.f.Attach.Attach(d.soon(), region.Request(v, region.NodeA))
		return err
	}
	detach := func(d driver, v string) error { return d.f.Attach.Detach(d.soon(), v, region.NodeA) }
	for action, row := range map[string]struct {
		call, then func(d driver, v string) error
	}{
		"CreateVolume": {call: func(d driver, _ string) error {
			_, err := d.Create(d.soon(), region.Spec("another"))
			return err
		}},
		"CreateSnapshot": {call: func(d driver, v string) error {
			_, err := d.f.Snapshot.CreateSnapshot(d.soon(), backends.SnapshotSpec{Name: "s", Volume: v})
			return err
		}},
		"AttachVolume": {attach, detach},
		"DetachVolume": {func(d driver, v string) error { return cmp.Or(attach(d, v), detach(d, v)) }, attach},
	} {
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const answer = "<Response><Errors><Error><Code>Unheard.Of</Code></Error></Errors></Response>"
				w := region.New(t, region.Quick(), 0)
				v := open(t, w, nil).make("one").Handle
				d := open(t, w, func(c *ebs.Config) {
					c.AWS.HTTPClient = answering{c.AWS.HTTPClient, action, http.StatusBadRequest, answer}
				})
				err := row.call(d, v)
				if !undecided(err) || !strings.Contains(err.Error(), "Unheard.Of") || strings.Contains(err.Error(), "not known") {
					t.Errorf("refused: %v, want EC2's reason and no doubt about the effect", err)
				}
				if row.then == nil {
					return
				}
				if err := row.then(d, v); err != nil {
					t.Errorf("after it: %v", err)
				}
			})
		})
	}
}
