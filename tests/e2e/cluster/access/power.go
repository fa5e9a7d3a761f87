package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

// StopNode ends a node at once, as a loss of power does, without a shutdown of its processes. The node stays off until
// StartNode. The API server notices when the node's lease is not renewed.
func (c *Cluster) StopNode(ctx context.Context, name string) error {
	pid, err := os.ReadFile(c.layout.NodeProcess(name))
	if err != nil {
		return fmt.Errorf("there is no node %s, but %s: %w", name, strings.Join(c.Nodes(), ", "), err)
	}
	if err := os.WriteFile(c.layout.NodeOff(name), nil, 0o644); err != nil {
		return err
	}
	if out, err := c.ControlPlaneCommand(ctx, "kill", "-KILL", string(pid)).CombinedOutput(); err != nil {
		return fmt.Errorf("end %s: %w: %s", name, err, out)
	}
	return nil
}

// StartNode starts a node that was stopped. Its kubelet starts its pods again.
func (c *Cluster) StartNode(name string) error {
	err := os.Remove(c.layout.NodeOff(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not off: %w", name, err)
	}
	return err
}

// CutNode disconnects a node from the network, while its processes continue to run.
func (c *Cluster) CutNode(ctx context.Context, name string) error { return c.cable(ctx, name, "down") }

// MendNode reconnects a node that was cut off.
func (c *Cluster) MendNode(ctx context.Context, name string) error { return c.cable(ctx, name, "up") }

func (c *Cluster) cable(ctx context.Context, name, state string) error {
	out, err := c.ControlPlaneCommand(ctx, "ip", "link", "set", layout.Cable(name), state).CombinedOutput()
	if err != nil {
		return fmt.Errorf("put the cable of %s %s: %w: %s", name, state, err, out)
	}
	return nil
}
