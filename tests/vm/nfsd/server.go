package nfsd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/inside"
)

// The ports of the server.
const (
	Port       = 2049
	MountPort  = 20048 // of mountd, for NFS 3
	rpcbindTCP = 111
)

// control is the folder in which the kernel's server is configured (nfsd(7)).
const control = "/proc/fs/nfsd"

// answerLimit is the limit for a daemon to start listening.
const answerLimit = 2 * time.Minute

// Config configures the server. The zero value is a good default.
type Config struct {
	// Versions are the versions of the protocol: 3, 4.0, 4.1, 4.2. The default is 3, 4.1 and 4.2.
	Versions []string
	// Threads is the number of threads; 0 for 4.
	Threads int
	// Grace keeps the grace period of ten seconds after each start, in which NFS 4 clients may reclaim open files, and no
	// client may open any other. Without it the period is cut short.
	Grace bool
	// Address is the IPv4 address on which the kernel listens; empty for all addresses.
	Address string
}

// Server is the kernel's NFS server, with the daemons that it needs.
type Server struct {
	config  Config
	rpcbind *exec.Cmd
	mountd  *exec.Cmd
}

// Start starts the server, without exports.
func Start(ctx context.Context, config Config) (*Server, error) {
	if err := inside.Check(); err != nil {
		return nil, err
	}
	if err := mountControl(); err != nil {
		return nil, err
	}
	running, err := Threads()
	if err != nil {
		return nil, err
	}
	if running > 0 {
		return nil, fmt.Errorf("an NFS server with %d threads is running: Stop it, or Clear what another test left", running)
	}
	if len(config.Versions) == 0 {
		config.Versions = []string{"3", "4.1", "4.2"}
	}
	config.Threads = cmp.Or(config.Threads, 4)
	s := &Server{config: config}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	if err := unexportAll(ctx); err != nil {
		return err
	}
	// rpcbind keeps its sockets in this folder, but does not create it.
	err := os.MkdirAll("/run/rpcbind", 0o755)
	if err != nil {
		return err
	}
	// The kernel registers NFS 3 with rpcbind when it opens its port.
	if s.rpcbind, err = daemon(ctx, rpcbindTCP, "rpcbind", "-f"); err != nil {
		return err
	}
	if s.mountd, err = daemon(ctx, MountPort, "rpc.mountd", "--foreground", "--port", fmt.Sprint(MountPort)); err != nil {
		return err
	}
	return s.Resume(ctx)
}

// Resume makes the kernel serve, at first and after Kill.
func (s *Server) Resume(_ context.Context) error {
	// Versions and times can be set only while there are no sockets.
	for _, setting := range []struct{ name, value string }{
		{"versions", s.versions()}, {"nfsv4gracetime", "10"}, {"nfsv4leasetime", "10"},
	} {
		if err := set(setting.name, setting.value); err != nil {
			return err
		}
	}
	if err := listen(s.config.Address); err != nil {
		return err
	}
	if err := set("threads", fmt.Sprint(s.config.Threads)); err != nil || s.config.Grace {
		return err
	}
	return set("v4_end_grace", "Y")
}

// versions returns the kernel's setting: all versions, with + or -.
func (s *Server) versions() string {
	text, four := []string{}, "-4"
	for _, version := range []string{"3", "4.0", "4.1", "4.2"} {
		sign := "-"
		for _, wanted := range s.config.Versions {
			if wanted == version {
				sign = "+"
			}
		}
		if sign == "+" && strings.HasPrefix(version, "4") {
			four = "+4"
		}
		text = append(text, sign+version)
	}
	// 4 switches all of its minor versions, and must come first.
	return strings.Join(append([]string{four}, text...), " ")
}

// listen gives the kernel a socket that listens on the port. The kernel would not register its own socket with rpcbind,
// and sockets of package net are MPTCP instead of plain TCP.
func listen(address string) error {
	at := netip.IPv4Unspecified()
	if address != "" {
		var err error
		if at, err = netip.ParseAddr(address); err != nil {
			return err
		}
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(socket, &unix.SockaddrInet4{Port: Port, Addr: at.As4()})
	}
	if err == nil {
		err = unix.Listen(socket, 64)
	}
	if err == nil {
		err = set("portlist", fmt.Sprint(socket))
	}
	// The kernel holds the socket from here on.
	return errors.Join(err, unix.Close(socket))
}

// Kill ends the kernel's threads at once, as a crash of the server does. Connections break, and new ones are refused.
// Exports stay configured, and mountd continues. Resume reverts it.
func (s *Server) Kill(_ context.Context) error { return set("threads", "0") }

// Stop ends the server and its daemons. It is idempotent.
func (s *Server) Stop(ctx context.Context) error {
	err := errors.Join(set("threads", "0"), unexportAll(ctx))
	for _, d := range []*exec.Cmd{s.mountd, s.rpcbind} {
		if d != nil && d.ProcessState == nil {
			_ = d.Process.Kill() // It may have ended already.
			_ = d.Wait()         // It was killed: its status is known.
		}
	}
	return err
}

// Clear ends a running server, and removes every Block. Tests call it first, because others may have run before.
func Clear(ctx context.Context) error {
	if err := inside.Check(); err != nil {
		return err
	}
	if err := mountControl(); err != nil {
		return err
	}
	return errors.Join(set("threads", "0"), unexportAll(ctx), Unblock(ctx))
}

// Threads returns the number of serving threads, which is zero while the server is stopped or killed.
func Threads() (n int, err error) {
	text, err := os.ReadFile(filepath.Join(control, "threads"))
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(text), &n)
	return n, err
}

func mountControl() error {
	if _, err := os.Stat(filepath.Join(control, "threads")); err == nil {
		return nil
	}
	// This loads the module, which creates the folder.
	if err := command(context.Background(), "modprobe", "nfsd"); err != nil {
		return err
	}
	if err := unix.Mount("nfsd", control, "nfsd", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mount %s: %w", control, err)
	}
	return nil
}

func set(name, value string) error {
	err := os.WriteFile(filepath.Join(control, name), []byte(value+"\n"), 0o600)
	if err != nil {
		return fmt.Errorf("set %s of the NFS server to %q: %w", name, value, err)
	}
	return nil
}
