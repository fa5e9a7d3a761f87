package controlplane

import (
	"context"
	"fmt"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/machine"
)

// bridge is the bridge that connects the nodes.
const bridge = "nodes"

// network creates the network of the nodes, and routes to their pods.
func network(ctx context.Context, m *machine.Machine, nodes int) error {
	commands := [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "link", "add", bridge, "type", "bridge"},
		{"ip", "address", "add", fmt.Sprintf("%s/%d", layout.ControlPlane, layout.Prefix), "dev", bridge},
		{"ip", "link", "set", bridge, "up"},
	}
	for number := 1; number <= nodes; number++ {
		commands = append(commands, []string{"ip", "route", "add", layout.PodRange(number), "via",
			layout.NodeAddress(number)})
	}
	for _, command := range commands {
		if err := m.Run(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

// plug connects the process's network namespace. In that namespace the interface is eth0.
func plug(ctx context.Context, m *machine.Machine, cable, pid string) error {
	// The interface of the node's previous run may still exist.
	_ = m.Run(ctx, "ip", "link", "delete", cable)
	if err := m.Run(ctx, "ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", pid); err != nil {
		return err
	}
	return m.Run(ctx, "ip", "link", "set", cable, "master", bridge, "up")
}
