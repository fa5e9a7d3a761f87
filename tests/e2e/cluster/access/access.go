package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/node"
)

// ErrDown is the error of a cluster that is not running.
var ErrDown = errors.New("the cluster is not running: bring it up with make cluster-up")

// Cluster is a cluster that runs on this machine.
type Cluster struct {
	layout      layout.Layout
	description layout.Description
	process     layout.Process
}

// Open returns the cluster whose data is in the folder, or ErrDown.
func Open(data string) (*Cluster, error) {
	l, err := layout.New(data)
	if err != nil {
		return nil, err
	}
	process, running, err := l.Running()
	if err != nil {
		return nil, err
	}
	if !running {
		return nil, fmt.Errorf("%s: %w", l.Data(), ErrDown)
	}
	d, err := l.Description()
	if err != nil {
		return nil, err
	}
	return &Cluster{layout: l, description: d, process: process}, nil
}

// Data returns the folder of the cluster's data.
func (c *Cluster) Data() string { return c.layout.Data() }

// Logs returns the folder of the components' logs.
func (c *Cluster) Logs() string { return c.layout.Path("logs") }

// Kubeconfig returns the path of an administrator's kubeconfig, for use on this machine.
func (c *Cluster) Kubeconfig() string { return c.layout.Kubeconfig() }

// Kubectl returns the path of a script that runs kubectl with that kubeconfig.
func (c *Cluster) Kubectl() string { return c.layout.Kubectl() }

// Nodes returns the names of the nodes.
func (c *Cluster) Nodes() []string {
	var names []string
	for number := 1; number <= c.description.Nodes; number++ {
		names = append(names, layout.NodeName(number))
	}
	return names
}

// KubectlCommand returns a command that runs kubectl.
func (c *Cluster) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.Kubectl(), args...)
}

// ControlPlaneCommand returns a command that runs in the namespaces of the control plane, on the host's files.
func (c *Cluster) ControlPlaneCommand(ctx context.Context, argv ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append(enter(strconv.Itoa(c.process.PID)), argv...)...)
}

// NodeCommand returns a command that runs in the namespaces of the node, on its files.
func (c *Cluster) NodeCommand(ctx context.Context, name string, argv ...string) (*exec.Cmd, error) {
	pid, err := os.ReadFile(c.layout.NodeProcess(name))
	if err != nil {
		return nil, fmt.Errorf("there is no node %s, but %s: %w", name, strings.Join(c.Nodes(), ", "), err)
	}
	// The process ID is valid only in the cluster's own PID namespace.
	inner := append([]string{"nsenter"}, enter(string(pid))...)
	return c.ControlPlaneCommand(ctx, append(inner, argv...)...), nil
}

func enter(pid string) []string {
	return []string{"--target", pid, "--mount", "--net", "--pid", "--uts", "--ipc", "--"}
}

// LoadImage loads an image into every node, from an archive that `docker save` or `buildah push docker-archive:` wrote.
func (c *Cluster) LoadImage(ctx context.Context, archive string) error {
	for _, name := range c.Nodes() {
		if err := c.loadImage(ctx, name, archive); err != nil {
			return fmt.Errorf("load %s into %s: %w", archive, name, err)
		}
	}
	return nil
}

func (c *Cluster) loadImage(ctx context.Context, name, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	cmd, err := c.NodeCommand(ctx, name, node.ImportCommand(c.layout, "-")...)
	if err != nil {
		return err
	}
	cmd.Stdin = file
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
