package nfsd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/inside"
)

// The network between this machine and the second server.
const (
	near, far           = "vm-near", "vm-far"
	nearAddress         = "10.99.0.1/24"
	farAddress, farBits = "10.99.0.2", "/24"
	elsewhereWord       = "nfs-server-elsewhere"
	ready               = "ready"
)

// Elsewhere is a second server that behaves like one on another machine: it has its own network, name, threads and
// exports. Changes to the first server do not affect it.
type Elsewhere struct {
	Address string // its IP address
	Path    string // the exported folder
	cmd     *exec.Cmd
	input   io.Closer
}

// ElsewhereMain must be called first in TestMain of programs that use StartElsewhere. In the process of the second
// server it does not return.
func ElsewhereMain() {
	if len(os.Args) != 3 || os.Args[1] != elsewhereWord {
		return
	}
	if err := beElsewhere(context.Background(), os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "the second server:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// StartElsewhere starts the second server, with one export, for NFS 4 only. It runs until it is stopped, or this
// process ends.
func StartElsewhere(ctx context.Context) (*Elsewhere, error) {
	if err := inside.Check(); err != nil {
		return nil, err
	}
	if err := mountControl(); err != nil { // It loads the module.
		return nil, err
	}
	path, err := Folder()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/proc/self/exe", elsewhereWord, path)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	e := &Elsewhere{Address: farAddress, Path: path, cmd: cmd, input: input}
	err = e.connect(ctx, input)
	if word, _ := bufio.NewReader(output).ReadString('\n'); err == nil && strings.TrimSpace(word) != ready {
		err = errors.New("the second server did not start")
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// connect creates the virtual cable, and tells the second server that it exists.
func (e *Elsewhere) connect(ctx context.Context, input io.Writer) error {
	for _, argv := range [][]string{
		{"ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", fmt.Sprint(e.cmd.Process.Pid)},
		{"ip", "addr", "add", nearAddress, "dev", near},
		{"ip", "link", "set", near, "up"},
	} {
		if err := command(ctx, argv...); err != nil {
			return errors.Join(err, e.input.Close())
		}
	}
	_, err := fmt.Fprintln(input, "go")
	return err
}

// Stop ends the second server.
func (e *Elsewhere) Stop() error {
	_ = e.input.Close() // It is already closed if there is no network.
	return errors.Join(e.cmd.Wait(), os.RemoveAll(e.Path))
}

// beElsewhere runs the second server until its input ends.
func beElsewhere(ctx context.Context, path string) error {
	input := bufio.NewReader(os.Stdin)
	if word, err := input.ReadString('\n'); err != nil {
		return fmt.Errorf("waiting for the network: %q, %w", word, err)
	}
	if err := setUpElsewhere(ctx); err != nil {
		return err
	}
	// The kernel stores clients only for the first network namespace. In others, the grace period cannot be cut short.
	server, err := Start(ctx, Config{Versions: []string{"4.1", "4.2"}, Grace: true})
	if err != nil {
		return err
	}
	err = server.Export(ctx, Export{Path: path, Options: []string{"no_root_squash"}})
	if err == nil {
		err = graceEnds()
	}
	if err == nil {
		fmt.Println(ready)
		_, err = io.Copy(io.Discard, input)
	}
	return errors.Join(err, server.Stop(ctx))
}

// setUpElsewhere sets up the process's simulated machine: its network, and its own folders for the server's state.
func setUpElsewhere(ctx context.Context) error {
	if err := unix.Sethostname([]byte("elsewhere")); err != nil {
		return err
	}
	for _, m := range []struct{ kind, path string }{{"tmpfs", "/run"}, {"tmpfs", "/var/lib/nfs"}, {"nfsd", control}} {
		if err := unix.Mount(m.kind, m.path, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.path, err)
		}
	}
	for _, name := range []string{"etab", "rmtab", "xtab", "state"} {
		if err := os.WriteFile("/var/lib/nfs/"+name, nil, 0o644); err != nil {
			return err
		}
	}
	for _, argv := range [][]string{
		{"ip", "link", "set", "lo", "up"}, {"ip", "addr", "add", farAddress + farBits, "dev", far},
		{"ip", "link", "set", far, "up"},
	} {
		if err := command(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}

// graceEnds waits until the kernel reports that the grace period is over.
func graceEnds() error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		text, err := os.ReadFile(filepath.Join(control, "v4_end_grace"))
		if err != nil || strings.HasPrefix(string(text), "Y") {
			return err
		}
		if time.Since(begun) > 2*time.Minute {
			return errors.New("the time of grace does not end")
		}
	}
}
