package node

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/machine"
)

// network configures the node's address, once it is plugged in, and the routes to other nodes' pods.
func (n *self) network(ctx context.Context, m *machine.Machine) error {
	err := machine.Until(ctx, "the network cable", func(context.Context) error {
		_, err := net.InterfaceByName("eth0")
		return err
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644); err != nil {
		return err
	}
	for _, command := range n.networkCommands() {
		if err := m.Run(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

func (n *self) networkCommands() [][]string {
	commands := [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "address", "add", fmt.Sprintf("%s/%d", layout.NodeAddress(n.number), layout.Prefix), "dev", "eth0"},
		{"ip", "link", "set", "eth0", "up"},
		// The gateway does not answer, but addresses of Services must have a route before they are translated.
		{"ip", "route", "add", "default", "via", layout.ControlPlane},
	}
	for other := 1; other <= n.nodes; other++ {
		if other != n.number {
			commands = append(commands, []string{"ip", "route", "add", layout.PodRange(other), "via", layout.NodeAddress(other)})
		}
	}
	return commands
}
