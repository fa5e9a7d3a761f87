package ebs_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

func TestMachine(t *testing.T) { synctest.Test(t, machineOfEC2) }

func machineOfEC2(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	reporter := open(t, w, nil).f.Machines
	query := backends.MachineQuery{Node: region.NodeB, ProviderID: "aws:///region-1a/" + region.NodeB}
	var began time.Time
	for _, c := range []struct {
		state string
		want  backends.MachineState
		anew  bool
	}{
		{"running", backends.MachineRunning, true},
		{"stopping", backends.MachineStopping, false},
		{"stopped", backends.MachineStopped, false},
		{"pending", backends.MachineRunning, true},
		{"running", backends.MachineRunning, false},
		{"shutting-down", backends.MachineStopping, false},
		{"terminated", backends.MachineTerminated, false},
		{"hibernated", "", false},
	} {
		w.Server.SetPower(region.NodeB, c.state)
		have, err := reporter.Machine(t.Context(), query)
		says := c.state
		if c.state == "hibernated" {
			says = "stopped (Client.UserInitiatedHibernate)"
		}
		if err != nil || have.State != c.want || have.Began.After(began) != c.anew ||
			!strings.Contains(have.Says, region.NodeB+" is "+says) {
			t.Errorf("%s: %+v, %v; want %q", c.state, have, err, c.want)
		}
		began = have.Began
		time.Sleep(time.Second) //nolint:forbidigo // Simulated time.
	}
	if other, err := reporter.Machine(t.Context(), backends.MachineQuery{Node: region.NodeA}); err != nil ||
		other.State != backends.MachineRunning {
		t.Errorf("the other instance: %+v, %v", other, err)
	}
}

// An answer that is not the state of one instance is an error, so that no caller takes it for one.
func TestMachineThatIsNotKnown(t *testing.T) { synctest.Test(t, machineThatIsNotKnown) }

func machineThatIsNotKnown(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	reporter := open(t, w, nil).f.Machines
	w.Server.SetPower(region.NodeA, "stopped")
	for name, c := range map[string]struct {
		query backends.MachineQuery
		kind  backends.Kind
	}{
		"no ID":            {backends.MachineQuery{}, backends.Invalid},
		"a name":           {backends.MachineQuery{Node: "node-1"}, backends.Invalid},
		"no such instance": {backends.MachineQuery{Node: "i-0123456789abcdef0"}, backends.NotFound},
		"another's providerID": {backends.MachineQuery{Node: region.NodeA, ProviderID: "aws:///region-1a/" + region.NodeB},
			backends.Invalid},
		"another cloud": {backends.MachineQuery{Node: region.NodeA, ProviderID: "gce://project/zone/name"},
			backends.Invalid},
		"a providerID that lies": {backends.MachineQuery{Node: region.NodeA, ProviderID: region.NodeA}, backends.Invalid},
	} {
		if have, err := reporter.Machine(t.Context(), c.query); !backends.Is(err, c.kind) {
			t.Errorf("%s: %+v, %v; want %v", name, have, err, c.kind)
		}
	}
	w.Server.Forbid("DescribeInstances")
	if have, err := reporter.Machine(t.Context(),
		backends.MachineQuery{Node: region.NodeA}); !backends.Is(err, backends.Denied) {
		t.Errorf("without the right to ask: %+v, %v", have, err)
	}
}
