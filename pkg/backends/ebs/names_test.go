package ebs_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/attach"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestAnotherNameIsTriedForANameOnly: EC2 has one code for a device name that is in use and for any other value that it
// does not accept ("Error codes for the Amazon EC2 API", InvalidParameterValue).
func TestAnotherNameIsTriedForANameOnly(t *testing.T) {
	synctest.Test(t, anotherNameIsTriedForANameOnly)
}

func anotherNameIsTriedForANameOnly(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v, other := d.make("one").Handle, d.make("other").Handle
	w.Server.SetUnfit(region.NodeA, true)
	_, err := d.f.Attach.Attach(t.Context(), region.Request(v, region.NodeA))
	if n := w.Server.Calls()["AttachVolume"]; !backends.Is(err, backends.Invalid) || errors.Is(err, attach.ErrNameTaken) ||
		!strings.Contains(err.Error(), "does not support the volume") || n != 1 {
		t.Errorf("EC2 does not accept the instance: %v after %d requests; want Invalid with its reason after 1", err, n)
	}
	w.Server.SetUnfit(region.NodeA, false)
	w.Server.Plug(other, region.NodeA, "/dev/xvdab") // The driver's next name, of which it has not heard.
	_, err = d.f.Attach.Attach(t.Context(), region.Request(v, region.NodeA))
	if n := w.Server.Calls()["AttachVolume"]; err != nil || n != 3 {
		t.Errorf("EC2 does not accept the name: %v after %d requests; want another name at the third", err, n)
	}
}
