package up

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/apiserver"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/machine"
)

// errLost ends the wait for a cluster whose process has ended.
var errLost = errors.New("the process that holds the cluster has ended")

// ready waits until the cluster can be used, and prints the duration of each step.
func (o Options) ready(ctx context.Context, begun time.Time) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("not within %v: see the logs in %s", patience, o.Layout.Path("logs")))
	defer cancel()
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	go o.watch(ctx, lost)
	d, err := o.Layout.Description()
	if err != nil {
		return err
	}
	api, err := apiserver.NewClient(o.Layout, "admin", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.Port)))
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what  string
		check func(context.Context) error
	}{
		{"the API server is ready", api.Ready},
		{"the nodes are Ready", func(ctx context.Context) error { return nodesReady(ctx, api, d.Nodes) }},
		{"the nodes have all images", func(context.Context) error { return o.imported(d.Nodes) }},
		{"the snapshot CRDs and controller are applied", o.applyAddons},
		{"service accounts and the snapshot controller are ready",
			func(ctx context.Context) error { return settled(ctx, api) }},
	} {
		if err := machine.Until(ctx, step.what, step.check); err != nil {
			return err
		}
		o.say("%-55s %6.1f s", step.what, time.Since(begun).Seconds())
	}
	return nil
}

// watch ends the wait when the cluster's process has ended.
func (o Options) watch(ctx context.Context, lost context.CancelCauseFunc) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, running, err := o.Layout.Running(); err != nil || !running {
				lost(fmt.Errorf("%w: see %s", errors.Join(errLost, err), o.Layout.Log("cluster")))
				return
			}
		}
	}
}

func (o Options) imported(nodes int) error {
	for number := 1; number <= nodes; number++ {
		if _, err := os.Stat(o.Layout.NodeImages(layout.NodeName(number))); err != nil {
			return err
		}
	}
	return nil
}

// applyAddons may fail at first, while the addons' namespace does not exist.
func (o Options) applyAddons(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, o.Layout.Kubectl(), "apply", "--server-side", "--force-conflicts", "-f",
		o.Layout.Path("addons"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, out)
	}
	return nil
}

type condition struct{ Type, Status string }

func nodesReady(ctx context.Context, api *apiserver.Client, want int) error {
	var nodes struct {
		Items []struct {
			Status struct{ Conditions []condition }
		}
	}
	if err := api.Get(ctx, "/api/v1/nodes", &nodes); err != nil {
		return err
	}
	ready := 0
	for _, node := range nodes.Items {
		for _, c := range node.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" {
				ready++
			}
		}
	}
	if ready != want {
		return fmt.Errorf("%d of %d nodes are Ready", ready, want)
	}
	return nil
}

// settled checks that pods can be created, and that the snapshot controller runs.
func settled(ctx context.Context, api *apiserver.Client) error {
	if err := api.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", &struct{}{}); err != nil {
		return err
	}
	var deployment struct {
		Spec   struct{ Replicas int }
		Status struct{ ReadyReplicas int }
	}
	if err := api.Get(ctx, "/apis/apps/v1/namespaces/kube-system/deployments/snapshot-controller",
		&deployment); err != nil {
		return err
	}
	if deployment.Status.ReadyReplicas != deployment.Spec.Replicas {
		return fmt.Errorf("%d of %d snapshot controllers are ready", deployment.Status.ReadyReplicas,
			deployment.Spec.Replicas)
	}
	return nil
}

// usage prints how to use the cluster.
func (o Options) usage(version string) {
	var nodes []string
	for number := 1; number <= o.Nodes; number++ {
		nodes = append(nodes, layout.NodeName(number))
	}
	fmt.Fprintf(o.Out, `
Kubernetes %s is up with %s.

  export KUBECONFIG=%s
  %s get nodes,pods -A
  %s node-1 bash          # a shell on a node
  %s/             # what each component says
  make cluster-down

`, version, strings.Join(nodes, ", "), o.Layout.Kubeconfig(), o.Layout.Kubectl(), o.Layout.Path("bin", "enter"), o.Layout.Path("logs"))
}
