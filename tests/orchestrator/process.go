package orchestrator

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// startLimit is the limit for a driver's first answer after its start.
const startLimit = 2 * time.Minute

// Driver is the driver's binary. If it runs, it is a child of this process.
type Driver struct {
	Binary    string
	Workspace *Workspace
	Backend   string   // --backend
	Args      []string // more flags

	process *process
}

// process is one run of the binary.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	done    chan struct{} // closed once the process has ended
	err     error         // its result; set before done is closed
}

// Endpoint returns the driver's --endpoint.
func (d *Driver) Endpoint() string { return "unix://" + d.Workspace.Socket() }

// Start starts the driver, waits until it answers, and returns the duration.
func (d *Driver) Start(ctx context.Context) (time.Duration, error) {
	if err := d.Spawn(ctx); err != nil {
		return 0, err
	}
	return d.Ready(ctx)
}

// Spawn starts the driver without waiting for its first answer.
func (d *Driver) Spawn(ctx context.Context) error {
	if d.process != nil {
		return errors.New("the driver runs already")
	}
	log, err := os.OpenFile(d.Workspace.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	args := append([]string{"standalone", "--backend=" + d.Backend, "--endpoint=" + d.Endpoint(),
		"--data-dir=" + d.Workspace.Data()}, d.Args...)
	// The driver's life is independent of a request's context: Kill and Stop end it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), d.Binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// In a separate process group, so that Ctrl-C reaches only this process. If this process dies, the kernel kills the
	// driver.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &process{cmd: cmd, done: make(chan struct{})}
	begun := make(chan error, 1)
	go p.run(begun)
	if err := errors.Join(<-begun, log.Close()); err != nil {
		return fmt.Errorf("start %s: %w", d.Binary, err)
	}
	d.process = p
	return nil
}

// run starts the process and waits for its end, on one thread: for the kernel, the death of the thread that started a
// child is the death of the parent (prctl(2), PR_SET_PDEATHSIG).
func (p *process) run(begun chan<- error) {
	runtime.LockOSThread()
	defer close(p.done)
	p.started = time.Now()
	if p.err = p.cmd.Start(); p.err != nil {
		begun <- p.err
		return
	}
	begun <- nil
	p.err = p.cmd.Wait()
}

// Ready waits until the driver answers Probe, and returns the time since its start.
func (d *Driver) Ready(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	go func() {
		select {
		case <-d.process.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	connection, err := connect(d.Endpoint(), time.Millisecond)
	if err != nil {
		return 0, err
	}
	response, err := csi.NewIdentityClient(connection).Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
	took := time.Since(d.process.started)
	if err == nil && response.GetReady() != nil && !response.GetReady().GetValue() {
		err = errors.New("it says that it is not ready")
	}
	if err = errors.Join(err, connection.Close()); err != nil && !d.Running() {
		return 0, fmt.Errorf("the driver ended before it answered: %w", cmp.Or(d.process.err, errors.New("exit status 0")))
	}
	if err != nil {
		return 0, fmt.Errorf("the driver does not answer after %s: %w", took.Round(time.Millisecond), err)
	}
	return took, nil
}

// connect creates a connection that reconnects quickly, first after the delay.
func connect(endpoint string, delay time.Duration, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(endpoint, append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: delay, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 10 * delay},
			MinConnectTimeout: time.Second,
		}))...)
}

// PID returns the ID of the running process.
func (d *Driver) PID() int { return d.process.cmd.Process.Pid }

// Running reports whether the process is running.
func (d *Driver) Running() bool {
	if d.process == nil {
		return false
	}
	select {
	case <-d.process.done:
		return false
	default:
		return true
	}
}

// Kill ends the driver by SIGKILL, with or without its child processes, and returns once it has ended.
func (d *Driver) Kill(children bool) error {
	if d.process == nil {
		return nil
	}
	pid := d.process.cmd.Process.Pid
	if children {
		pid = -pid
	}
	err := syscall.Kill(pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		err = nil
	}
	<-d.process.done
	ended := d.process.err
	d.process = nil
	if !killed(ended) {
		err = errors.Join(err, fmt.Errorf("the driver had ended by itself: %w", cmp.Or(ended, errors.New("exit status 0"))))
	}
	return err
}

// killed reports whether a process ended by SIGKILL.
func killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signal() == syscall.SIGKILL
}

// Stop ends the driver by SIGTERM, waits for its end, and fails if it exited with an error or left its socket.
func (d *Driver) Stop(ctx context.Context) error {
	if d.process == nil {
		return errors.New("the driver does not run")
	}
	if err := d.process.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-d.process.done:
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("the driver did not stop: %w", ctx.Err()), d.Kill(true))
	}
	err := d.process.err
	d.process = nil
	if err != nil {
		return fmt.Errorf("the driver's end: %w", err)
	}
	if _, err := os.Lstat(d.Workspace.Socket()); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("the driver left its socket %s", d.Workspace.Socket()), err)
	}
	return nil
}

// Tail returns the last lines of the driver's log.
func (d *Driver) Tail(lines int) string {
	text, err := os.ReadFile(d.Workspace.Log())
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	from := max(0, len(all)-lines)
	return fmt.Sprintf("%s, the last %d of %d lines:\n  %s", filepath.Base(d.Workspace.Log()), len(all)-from, len(all),
		strings.ReplaceAll(string(bytes.Join(all[from:], []byte("\n"))), "\n", "\n  "))
}
