package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/stowage-csi/stowage/tests/localpools"
	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// stopTimeout limits the time for the driver to end after SIGTERM. Only one that hangs takes that long.
const stopTimeout = 2 * time.Minute

// driver is the driver as a child process, with a connection to it.
type driver struct {
	command *exec.Cmd
	log     *os.File
	conn    *grpc.ClientConn
	metrics string        // the address that serves them
	exited  chan struct{} // closed when the process has ended
	err     error         // the process's result; valid after exited is closed
}

// startDriver starts the binary with its data and its socket in dir, and waits until it is ready. The process is not
// tied to ctx: it is stopped in an orderly way even if the run is interrupted.
func startDriver(ctx context.Context, binary, dir string) (*driver, error) {
	metrics, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "driver.log"))
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "csi.sock")
	pools, err := localpools.Flag(dir)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	command := exec.CommandContext(context.WithoutCancel(ctx), binary, "standalone",
		"--backend=local", "--endpoint=unix://"+socket, "--data-dir="+filepath.Join(dir, "data"), "--http-endpoint="+metrics,
		pools)
	command.Stdout, command.Stderr = log, log
	// In its own process group, so that Ctrl-C reaches only this process; it must not outlive this process.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGTERM}
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the driver (is it built? make build): %w", err), log.Close())
	}
	d := &driver{command: command, log: log, metrics: metrics, exited: make(chan struct{})}
	go func() {
		d.err = command.Wait()
		close(d.exited)
	}()
	if d.conn, err = dial(socket, patient()); err == nil {
		err = d.waitReady(ctx)
	}
	if err != nil {
		return nil, errors.Join(d.explain(fmt.Errorf("the driver does not start: %w", err)), d.stop())
	}
	return d, nil
}

// patient makes calls retry as an orchestrator does. The time of retries is measured too: other load on the machine
// affects the numbers, but causes no failure.
func patient() grpc.DialOption {
	return orchestrator.Patiently(rpcTimeout, 5*time.Millisecond)
}

func (d *driver) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-d.exited:
			cancel(fmt.Errorf("it ended (%s)", d.command.ProcessState))
		case <-ctx.Done():
		}
	}()
	return waitReady(ctx, csi.NewIdentityClient(d.conn))
}

func (d *driver) pid() int { return d.command.Process.Pid }

// stop ends the driver and returns an error unless it ended as it should. It may be called once.
func (d *driver) stop() error {
	if d.conn != nil {
		_ = d.conn.Close() // The process ends next in any case.
	}
	_ = d.command.Process.Signal(unix.SIGTERM) // It may have ended already; the wait below detects that.
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	var err error
	select {
	case <-d.exited:
		err = d.err
	case <-timer.C:
		_ = d.command.Process.Kill() // This fails only if the process has ended.
		<-d.exited
		err = fmt.Errorf("it did not end within %s after SIGTERM", stopTimeout)
	}
	if err != nil {
		err = fmt.Errorf("stopping the driver: %w", err)
	}
	return errors.Join(err, d.log.Close())
}

// explain adds the end of the driver's log to an error.
func (d *driver) explain(err error) error {
	const tail = 2048
	text, errRead := os.ReadFile(d.log.Name())
	if errRead != nil {
		return errors.Join(err, errRead)
	}
	return fmt.Errorf("%w\nThe driver's log ends with:\n%s", err, text[max(0, len(text)-tail):])
}
