package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/internal/qemu"
	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
)

// marker begins a line that the testing package printed, as opposed to a test (-test.v=test2json).
const marker = "\x16"

// errSpoiled ends a guest in which a program was killed.
var errSpoiled = errors.New("a program was killed; what it left in the kernel may fail the next: they get a new guest")

// report converts the guest's frames to events.
type report struct {
	out    io.Writer
	accel  qemu.Accel
	booted time.Time
	up     time.Duration // from the start of QEMU until the guest was up
	ended  int
	failed int

	// The converter of the running program's output.
	convert *exec.Cmd
	input   io.WriteCloser
	empty   bool // whether it has reported no test so far
}

func newReport(out io.Writer) *report { return &report{out: out} }

// trying records the accelerator of the next attempt.
func (r *report) trying(accel qemu.Accel) {
	if r.accel != "" {
		say("no guest comes up with %s: trying %s", r.accel, accel)
	}
	r.accel, r.booted = accel, time.Now()
}

// take handles a frame.
func (r *report) take(f wire.Frame) error {
	switch f.Kind {
	case wire.Up:
		r.up = time.Since(r.booted)
		say("a guest is up with %s after %v", r.accel, since(r.booted))
	case wire.Begin:
		return r.begin(f)
	case wire.Output:
		return r.output(f.Text)
	case wire.End:
		return r.end(f)
	case wire.Alive, wire.Done, wire.Broken:
		// The follower of the guest handles these.
	}
	return nil
}

// begin starts the converter of a program's output to the events of go test -json.
func (r *report) begin(f wire.Frame) error {
	r.convert = exec.CommandContext(context.Background(), "go", "tool", "test2json", "-t", "-p", f.Program)
	r.convert.Stdout, r.convert.Stderr = r.out, os.Stderr
	r.empty = true
	var err error
	if r.input, err = r.convert.StdinPipe(); err != nil {
		return err
	}
	return r.convert.Start()
}

func (r *report) output(text string) error {
	if r.input == nil {
		return fmt.Errorf("the guest sent the output %q of no program", text)
	}
	r.empty = r.empty && !strings.Contains(text, "=== RUN ")
	_, err := io.WriteString(r.input, text)
	return err
}

// end reports a failed program as the go command does. A program that ran no tests has failed: its suite names tests
// that no longer exist. It returns errSpoiled after a program that was killed.
func (r *report) end(f wire.Frame) error {
	r.ended++
	if f.Code != 0 || r.empty {
		r.failed++
		if err := r.output(fmt.Sprintf("\nexit status %d\n%sFAIL\t%s\n", f.Code, marker, f.Program)); err != nil {
			return err
		}
	}
	if err := r.close(); err != nil || f.Code != 128+int(unix.SIGKILL) {
		return err
	}
	return errSpoiled
}

// cutOff completes the events of a program that did not end.
func (r *report) cutOff() error {
	if r.input == nil {
		return nil
	}
	r.failed++
	return errors.Join(r.output("\n"+marker+"FAIL\tthe guest ended before the tests did\n"), r.close())
}

func (r *report) close() error {
	err := errors.Join(r.input.Close(), r.convert.Wait())
	r.input = nil
	return err
}

// verdict returns an error if a program failed.
func (r *report) verdict(job wire.Job) error {
	switch {
	case r.failed > 0:
		return fmt.Errorf("%d of %d test binaries failed", r.failed, len(job.Programs))
	case r.ended != len(job.Programs):
		return fmt.Errorf("the guest ran %d of %d test binaries", r.ended, len(job.Programs))
	}
	return nil
}

// outcome summarizes the run.
func (r *report) outcome() string {
	return fmt.Sprintf("%d test binaries ran in the guest (%s), which took %v to boot and %v in all", r.ended, r.accel,
		r.up.Round(100*time.Millisecond), since(r.booted))
}
