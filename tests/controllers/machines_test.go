package controllers

import (
	"context"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/machines"
	"github.com/stowage-csi/stowage/tests/cloud/region"
	"github.com/stowage-csi/stowage/tests/inprocess"
)

// TestMachineThroughTheSocket makes calls to the real driver over a real socket, with the strict API of EC2 behind it.
func TestMachineThroughTheSocket(t *testing.T) {
	r := region.New(t, region.Quick(), 0)
	definition := ebs.Definition()
	open := definition.Open
	definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		r.Configure(&o)
		return open(ctx, o)
	}
	driver := inprocess.Start(t, inprocess.Options{Backend: "ebs", Definition: &definition, NodeID: region.NodeA})
	client, err := csiclient.Connect(t.Context(), driver.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.KnowsMachines(t.Context()); err != nil {
		t.Error(err)
	}
	query := machines.Query{Node: region.NodeB, ProviderID: "aws:///region-1a/" + region.NodeB}
	if have, err := client.Machine(t.Context(), query); err != nil || have.State != machines.Running ||
		have.Began.IsZero() {
		t.Errorf("before: %+v, %v", have, err)
	}
	r.Server.SetPower(region.NodeB, "stopped")
	if have, err := client.Machine(t.Context(), query); err != nil || !have.State.Off() ||
		!strings.Contains(have.Says, "is stopped") {
		t.Errorf("stopped: %+v, %v", have, err)
	}
	query.ProviderID = "aws:///region-1a/" + region.NodeA
	if have, err := client.Machine(t.Context(), query); err == nil ||
		!strings.Contains(csiclient.Message(err), "which of them it is, is not known") {
		t.Errorf("two machines: %+v, %v", have, err)
	}
}

// TestDriverWithoutMachines uses a backend without machines.
func TestDriverWithoutMachines(t *testing.T) {
	_, client, _ := start(t)
	if err := client.KnowsMachines(t.Context()); err == nil || !strings.Contains(err.Error(), "leave out --failover") {
		t.Errorf("it is said to know machines: %v", err)
	}
}
