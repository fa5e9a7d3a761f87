package controlplane

import (
	"context"
	"fmt"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/machine"
)

// bridge is what the nodes are plugged into.
const bridge = "nodes"

// network makes the network of the nodes, and routes to their pods.
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

// plug connects the process's network namespace: there, the cable's end is named eth0.
func plug(ctx context.Context, m *machine.Machine, cable, pid string) error {
	// One of an earlier life of the node may not have gone with it yet.
	_ = m.Run(ctx, "ip", "link", "delete", cable)
	if err := m.Run(ctx, "ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", pid); err != nil {
		return err
	}
	return m.Run(ctx, "ip", "link", "set", cable, "master", bridge, "up")
}
