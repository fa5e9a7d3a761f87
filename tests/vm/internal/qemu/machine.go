package qemu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
	"github.com/stowage-csi/stowage/tests/vm/internal/workspace"
)

// Config describes a guest.
type Config struct {
	Workspace *workspace.Workspace
	Accel     Accel
	MemoryMiB int
	// Kernel, Initrd and Disk are files. The disk's file is not written to.
	Kernel, Initrd, Disk string
	Share                string // the folder that the guest sees
	// Silence is the longest silence before the guest counts as hanging; 0 for DefaultSilence.
	Silence time.Duration
}

// Guest is a running guest.
type Guest struct {
	qemu, shared *workspace.Process
	silence      time.Duration
	console, log string // files
	frames       chan wire.Frame
	received     chan error // the error of the receiver, once frames is closed
}

// shareLimit is the limit for the daemon that shares the folder to start listening.
const shareLimit = 2 * time.Minute

// Start starts a guest.
func Start(ctx context.Context, c Config) (*Guest, error) {
	g := &Guest{silence: cmp.Or(c.Silence, DefaultSilence), console: c.Workspace.Path("console.log"),
		log: c.Workspace.Path("qemu.log"), frames: make(chan wire.Frame, 16), received: make(chan error, 1)}
	if err := g.startShare(ctx, c); err != nil {
		return nil, err
	}
	if err := g.startQEMU(ctx, c); err != nil {
		g.shared.Kill()
		return nil, err
	}
	return g, nil
}

func (c Config) socket() string { return c.Workspace.Path("share.sock") }

// virtiofsd returns the path of the daemon, which is not in PATH.
func virtiofsd() (string, error) {
	const old, current = "/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd"
	for _, path := range []string{old, current} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is neither %s nor %s: install Debian's qemu-system-common (hack/deps vm)", old, current)
}

// startShare starts the daemon that shares the folder, and waits until it listens.
func (g *Guest) startShare(ctx context.Context, c Config) error {
	path, err := virtiofsd()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(c.socket()); err != nil {
		return err
	}
	log, err := os.Create(c.Workspace.Path("virtiofsd.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path, "--socket-path="+c.socket(), "-o", "source="+c.Share,
		"-o", "cache=auto")
	cmd.Stdout, cmd.Stderr = log, log
	if g.shared, err = c.Workspace.Start(cmd); err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(shareLimit)
	for {
		if _, err := os.Stat(c.socket()); err == nil {
			return nil
		}
		select {
		case <-tick.C:
			continue
		case <-g.shared.Done():
			return fmt.Errorf("virtiofsd ended (%w): %s", g.shared.Err(), tail(log.Name(), 10))
		case <-limit:
			g.shared.Kill()
			return fmt.Errorf("virtiofsd does not listen after %v: %s", shareLimit, tail(log.Name(), 10))
		}
	}
}

// startQEMU starts the guest, and receives its frames until it ends.
func (g *Guest) startQEMU(ctx context.Context, c Config) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	log, err := os.Create(g.log)
	if err != nil {
		return errors.Join(err, read.Close(), write.Close())
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "qemu-system-x86_64", c.arguments(g.console)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{write}
	// Disks that are plugged in later are files in the shared folder.
	cmd.Dir = c.Share
	// QEMU writes the guest's changes of its disk to an unnamed file in this folder.
	cmd.Env = append(os.Environ(), "TMPDIR="+c.Workspace.Path())
	g.qemu, err = c.Workspace.Start(cmd)
	if err := errors.Join(err, write.Close(), log.Close()); err != nil {
		return errors.Join(err, read.Close())
	}
	go func() {
		defer close(g.frames)
		err := wire.Receive(read, func(f wire.Frame) { g.frames <- f })
		g.received <- errors.Join(err, read.Close())
	}()
	return nil
}

// arguments returns QEMU's arguments, which disable its defaults.
func (c Config) arguments(console string) []string {
	memory := fmt.Sprintf("%dM", c.MemoryMiB)
	// A panic or a reboot ends QEMU, and so does an oops, after which the kernel's behaviour proves nothing. Usercopy
	// hardening is off: when the guest serves an NVMe disk to itself over TCP, it sends buffers that span two memory
	// allocations. The kernel of Debian 12 takes this for a read beyond the first one, and dies.
	kernel := "console=ttyS0 panic=-1 oops=panic hardened_usercopy=off loglevel=5 rdinit=/init " + wire.Mark
	args := append(c.Accel.arguments(),
		"-machine", "q35", "-m", memory, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		// The daemon that shares the folder needs access to the memory.
		"-object", "memory-backend-memfd,id=memory,share=on,size="+memory, "-numa", "node,memdev=memory",
		"-kernel", c.Kernel, "-initrd", c.Initrd, "-append", kernel,
		"-serial", "file:"+console,
		// The second serial port is a pipe that QEMU inherits as descriptor 3.
		"-chardev", "file,id=frames,append=on,path=/proc/self/fd/3", "-serial", "chardev:frames",
		"-drive", "id=root,if=none,format=raw,snapshot=on,cache=unsafe,file="+filepath.Clean(c.Disk), "-device",
		"nvme,serial=root,drive=root",
		"-chardev", "socket,id=share,path="+c.socket(), "-device", "vhost-user-fs-pci,chardev=share,tag="+wire.Share,
		// The monitor listens on a socket, and QEMU's network connects the guest to it.
		"-chardev", "socket,id=monitor,server=on,wait=off,path="+c.Workspace.Path("qmp.sock"), "-mon",
		"chardev=monitor,mode=control",
		"-chardev", "socket,id=forward,path="+c.Workspace.Path("qmp.sock"),
		"-netdev", "user,id=net,guestfwd=tcp:"+wire.Monitor+"-chardev:forward", "-device",
		"virtio-net-pci,netdev=net,romfile=",
	)
	for port := range wire.SparePorts {
		args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=spare%d,chassis=%d,slot=%d", port, port+1, port+1))
	}
	return args
}
