package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/controlplane"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/pki"
)

// The file descriptors that the process which holds the cluster inherits.
const (
	listenerFile = 3
	gateFile     = 4
)

// launch starts the process that holds the cluster, in its own namespaces, and records it.
func (o Options) launch(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("the listener is a %T, not a TCP listener", listener)
	}
	if err := o.describePort(tcp.Addr()); err != nil {
		return err
	}
	file, err := tcp.File()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return o.start(ctx, file)
}

// describePort completes the description, and creates the certificates and kubeconfigs.
func (o Options) describePort(address net.Addr) error {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return fmt.Errorf("%v is no TCP address", address)
	}
	d, err := o.Layout.Description()
	if err != nil {
		return err
	}
	d.Port = tcp.Port
	if err := o.Layout.Describe(d); err != nil {
		return err
	}
	return pki.Write(o.Layout, o.Nodes, d.Port)
}

// start starts the process, which waits until the gate opens, and ends if this process ends first.
func (o Options) start(ctx context.Context, listener *os.File) error {
	waits, gate, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = waits.Close(); _ = gate.Close() }()
	log, err := os.OpenFile(o.Layout.Log("cluster"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	// It outlives this process.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), o.Layout.Self(), "control-plane", "-data", o.Layout.Data())
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{listener, waits}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: controlplane.Namespaces, Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the cluster's first process: %w", err)
	}
	if err := o.Layout.RecordProcess(cmd.Process.Pid); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	if _, err := gate.Write([]byte{1}); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// Inherited waits for the gate, and returns the host's listener, in the process that launch started.
func Inherited() (net.Listener, error) {
	gate := os.NewFile(gateFile, "gate")
	_, err := io.ReadFull(gate, make([]byte, 1))
	if err := errors.Join(err, gate.Close()); err != nil {
		return nil, fmt.Errorf("the one who started this cluster is gone: %w", err)
	}
	file := os.NewFile(listenerFile, "listener")
	listener, err := net.FileListener(file)
	return listener, errors.Join(err, file.Close())
}

// kill ends the process that holds the cluster, and with it every process of the cluster.
func kill(ctx context.Context, l layout.Layout) error {
	process, running, err := l.Running()
	if err != nil || !running {
		return err
	}
	fd, err := unix.PidfdOpen(process.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	// The descriptor may refer to a later process with the same ID.
	if _, running, err := l.Running(); err != nil || !running {
		return err
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return ended(ctx, fd)
}

// ended waits until the process has ended, when its descriptor becomes readable: pidfd_open(2).
func ended(ctx context.Context, fd int) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("the cluster's first process does not end: %w", context.Cause(ctx))
		}
	}
}
