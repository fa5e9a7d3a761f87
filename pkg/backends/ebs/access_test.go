package ebs_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestMultiAttachIsForSeveralNodes requests a volume with Multi-Attach for one node alone, at its creation and at its
// attachment.
func TestMultiAttachIsForSeveralNodes(t *testing.T) {
	for _, alone := range backends.SingleNodeModes() {
		t.Run(string(alone), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { multiAttachIsForSeveralNodes(t, alone) })
		})
	}
}

func multiAttachIsForSeveralNodes(t *testing.T, alone backends.AccessMode) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	refused := func(what string, err error) {
		t.Helper()
		if !backends.Is(err, backends.Invalid) || !strings.Contains(fmt.Sprint(err), "ReadWriteMany") {
			t.Errorf("%s: %v, want Invalid, and what is to be asked for", what, err)
		}
	}
	both := region.Shared("both")
	both.Access.Modes = append(both.Access.Modes, alone)
	_, err := d.Create(t.Context(), both)
	refused("made for several nodes and for one", err)
	if left := w.Server.Volumes(); len(left) != 0 {
		t.Errorf("there are %+v", left)
	}
	v, err := d.Create(t.Context(), region.Shared("v"))
	if err != nil {
		t.Fatal(err)
	}
	request := region.Request(v.Handle, region.NodeA)
	request.Access = backends.Access{Types: []backends.AccessType{backends.Block}, Modes: []backends.AccessMode{alone}}
	_, err = d.f.Attach.Attach(t.Context(), request)
	refused("attached to one node alone", err)
	if err := v.Access.Check(request.Access); !backends.Is(err, backends.Invalid) {
		t.Errorf("validated for one node: %v, want Invalid", err)
	}
	request.Access = region.Shared("v").Access
	for _, request.Node = range []string{region.NodeA, region.NodeB} {
		if _, err := d.f.Attach.Attach(t.Context(), request); err != nil {
			t.Errorf("attached to %s among others: %v", request.Node, err)
		}
	}
}
