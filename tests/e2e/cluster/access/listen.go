package access

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

// Listen listens in this process on a port of the control plane's address, which nodes and pods can reach. It lets a
// test serve requests of the cluster.
func (c *Cluster) Listen(ctx context.Context, port int) (net.Listener, error) {
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.process.PID))
	if err != nil {
		return nil, err
	}
	defer func() { _ = namespace.Close() }()
	var listener net.Listener
	done := make(chan error)
	go func() {
		// The thread stays locked: it ends with the goroutine, so that no other goroutine runs in the wrong network.
		runtime.LockOSThread()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter the network of the control plane: %w", err)
			return
		}
		var err error
		address := net.JoinHostPort(layout.ControlPlane, strconv.Itoa(port))
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		done <- err
	}()
	return listener, <-done
}
