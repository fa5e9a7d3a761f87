package node

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/apiserver"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/machine"
)

// patience is the limit for a component's first answer.
const patience = 3 * time.Minute

// self is a node of the cluster.
type self struct {
	layout layout.Layout
	number int
	name   string
	nodes  int // of the cluster
	images []string
}

// Run runs the node with the number, from 1, until ctx is done. The calling process is process 1 of new namespaces.
func Run(ctx context.Context, l layout.Layout, log *slog.Logger, number int) error {
	d, err := l.Description()
	if err != nil {
		return err
	}
	n := &self{layout: l, number: number, name: layout.NodeName(number), nodes: d.Nodes, images: d.Images}
	if err := unix.Sethostname([]byte(n.name)); err != nil {
		return err
	}
	if err := n.root(d.Store); err != nil {
		return err
	}
	if err := n.configure(); err != nil {
		return err
	}
	m := machine.New(ctx, log, l.Path("programs")+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	if err := n.start(ctx, m); err != nil {
		return err
	}
	m.Wait()
	return nil
}

// start starts each component once its dependencies are ready.
func (n *self) start(ctx context.Context, m *machine.Machine) error {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := n.network(wait, m); err != nil {
		return err
	}
	m.Start(ctx, n.component("containerd", "--config="+containerdConfig))
	imported := make(chan error, 1)
	go func() { imported <- n.importImages(wait, m) }()
	api, err := apiserver.NewClient(n.layout, n.name, net.JoinHostPort(layout.ControlPlane, strconv.Itoa(layout.APIPort)))
	if err != nil {
		return err
	}
	if err := machine.Until(wait, "the API server", api.Ready); err != nil {
		return err
	}
	if err := machine.Until(wait, "containerd", machine.Answers("unix", containerdSocket)); err != nil {
		return err
	}
	m.Start(ctx, n.component("kubelet", n.kubeletFlags()...))
	m.Start(ctx, n.component("kube-proxy", "--config="+proxyConfig))
	return <-imported
}

func (n *self) component(name string, flags ...string) machine.Component {
	return machine.Component{
		Name: name,
		Argv: append([]string{n.layout.Program(name)}, flags...),
		Log:  n.layout.Log(n.name + "-" + name),
	}
}
