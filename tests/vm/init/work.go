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

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/internal/stuck"
	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
)

// port is the second serial port; the first is the console.
const port = "/dev/ttyS1"

// work is the main function of the process that is not process 1.
func work() {
	out, err := openPort()
	if err != nil {
		fmt.Fprintln(os.Stderr, "init: open the port:", err)
		os.Exit(1)
	}
	host := wire.NewSender(out)
	if err := runJob(host); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
		_ = host.Send(wire.Frame{Kind: wire.Broken, Text: err.Error()}) // The console shows it too.
		os.Exit(1)
	}
}

// openPort opens the port, and configures the terminal driver not to change the output.
func openPort() (*os.File, error) {
	file, err := os.OpenFile(port, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	settings, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	settings.Oflag &^= unix.OPOST
	settings.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG
	return file, unix.IoctlSetTermios(int(file.Fd()), unix.TCSETS, settings)
}

func runJob(host *wire.Sender) error {
	if err := setUp(); err != nil {
		return err
	}
	job, err := wire.ReadJob(wire.SharePoint)
	if err != nil {
		return err
	}
	if err := host.Send(wire.Frame{Kind: wire.Up, Seconds: uptime()}); err != nil {
		return err
	}
	stop := pulse(host)
	defer stop()
	for _, p := range job.Programs {
		if err := runProgram(host, p); err != nil {
			return err
		}
	}
	return host.Send(wire.Frame{Kind: wire.Done, Seconds: uptime()})
}

// pulse reports that the guest is alive until stop is called.
func pulse(host *wire.Sender) (stop func()) {
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(wire.Pulse)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				_ = host.Send(wire.Frame{Kind: wire.Alive, Seconds: uptime()}) // The host notices the silence.
			}
		}
	}()
	return func() { close(ended) }
}

// output sends a program's output to the host.
type output struct {
	host *wire.Sender
	name string
}

// Write sends a piece of output.
func (o output) Write(piece []byte) (int, error) {
	return len(piece), o.host.Send(wire.Frame{Kind: wire.Output, Program: o.name, Text: string(piece)})
}

func runProgram(host *wire.Sender, p wire.Program) error {
	if err := host.Send(wire.Frame{Kind: wire.Begin, Program: p.Name, Seconds: uptime()}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(wire.SharePoint, p.Path), p.Args...)
	cmd.Dir, cmd.Env = filepath.Join(wire.SharePoint, p.Dir), append(environment(), "TMPDIR="+p.Temp)
	cmd.Stdout, cmd.Stderr = output{host, p.Name}, output{host, p.Name}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A daemon that the program leaves behind may keep its output open.
	cmd.WaitDelay = 5 * time.Second
	// What hangs is gone once the tests have ended.
	hangs := time.AfterFunc(p.Limit-wire.Grace-time.Minute, func() {
		fmt.Fprintf(output{host, p.Name}, "init: %s is about to be ended; what waits:\n%s", p.Name, stuck.Report())
	})
	defer hangs.Stop()
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	// End the rest of its process group; usually there is none.
	_ = unix.Kill(-cmd.ProcessState.Pid(), unix.SIGKILL)
	if errors.Is(err, exec.ErrWaitDelay) {
		fmt.Fprintf(output{host, p.Name}, "init: %s left a process behind that holds its output\n", p.Name)
	}
	return host.Send(wire.Frame{Kind: wire.End, Program: p.Name, Code: code(cmd.ProcessState), Seconds: uptime()})
}

// code returns the exit code in the form of a shell: 128 plus the number for signals.
func code(state *os.ProcessState) int {
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// uptime returns the time since the kernel started, in seconds.
func uptime() float64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return float64(now.Nano()) / 1e9
}
