package workload

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
	"github.com/stowage-csi/stowage/tests/e2e/nodeview"
)

// Cluster is a cluster that the driver is deployed in.
type Cluster struct {
	*access.Cluster
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Node    string // the node that has the volumes
}

// Connect connects to the API of a cluster.
func Connect(c *access.Cluster) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	// Tests must not be delayed by their own client's rate limit.
	config.QPS, config.Burst = 500, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamic, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{Cluster: c, Client: client, Dynamic: dynamic, Node: c.Nodes()[0]}, nil
}

// Look returns the view of the node's volumes.
func (c *Cluster) Look(ctx context.Context) (nodeview.View, error) {
	return nodeview.Look(ctx, c.Cluster, c.Node)
}

// OnNode runs a command on the node and returns its output.
func (c *Cluster) OnNode(ctx context.Context, argv ...string) (string, error) {
	cmd, err := c.NodeCommand(ctx, c.Node, argv...)
	if err != nil {
		return "", err
	}
	return output(cmd)
}

// Kubectl runs kubectl and returns its output.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return output(c.KubectlCommand(ctx, args...))
}

func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
