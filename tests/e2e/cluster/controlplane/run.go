package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/apiserver"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/machine"
)

// Namespaces are the new namespaces that the process which calls Run needs, as CLONE_NEW… flags.
const Namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// path is the search path for programs.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// patience is the limit for a component's first answer.
const patience = 2 * time.Minute

// Run runs the cluster until ctx is done. Connections to the listener, which is in the host's network, are forwarded to
// the API server. The calling process is process 1 of new namespaces.
func Run(ctx context.Context, l layout.Layout, log *slog.Logger, host net.Listener) error {
	d, err := l.Description()
	if err != nil {
		return err
	}
	if err := separate(); err != nil {
		return err
	}
	m := machine.New(ctx, log, path)
	if err := network(ctx, m, d.Nodes); err != nil {
		return err
	}
	go relay(ctx, log, host, net.JoinHostPort("127.0.0.1", strconv.Itoa(layout.APIPort)))
	for number := 1; number <= d.Nodes; number++ {
		m.Start(ctx, node(m, l, number))
	}
	if err := start(ctx, m, l); err != nil {
		return err
	}
	m.Wait()
	return nil
}

// separate hides mounts of this process from the host, and mounts a /proc that shows the processes of this namespace.
func separate() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return unix.Sethostname([]byte("control-plane"))
}

// start starts each component once its dependencies are ready.
func start(ctx context.Context, m *machine.Machine, l layout.Layout) error {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m.Start(ctx, component(l, "etcd", etcd(l)))
	if err := machine.Until(wait, "etcd", machine.Answers("tcp", etcdAddress)); err != nil {
		return err
	}
	m.Start(ctx, component(l, "kube-apiserver", server(l)))
	api, err := apiserver.NewClient(l, "admin", net.JoinHostPort("127.0.0.1", strconv.Itoa(layout.APIPort)))
	if err != nil {
		return err
	}
	if err := machine.Until(wait, "the API server", api.Ready); err != nil {
		return err
	}
	m.Log.Info("the API server is ready")
	m.Start(ctx, component(l, "kube-controller-manager", controllerManager(l)))
	m.Start(ctx, component(l, "kube-scheduler", scheduler(l)))
	return nil
}

func component(l layout.Layout, name string, flags []string) machine.Component {
	return machine.Component{Name: name, Argv: append([]string{l.Program(name)}, flags...), Log: l.Log(name)}
}
