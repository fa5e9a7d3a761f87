package filesystem

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// command is one run of a tool on a device.
type command struct {
	tool   string
	args   []string
	device *lockedDevice // the tool inherits it, and the lock with it
	// mustEnd keeps the tool alive when the context ends. gentle asks it to stop, in place of a kill.
	mustEnd, gentle bool
}

// result is how a tool ended.
type result struct {
	code  int    // the exit code; -1 when a signal ended it
	words string // the end of what it printed
}

// toolDirs are where Debian keeps filesystem tools.
func toolDirs() []string { return []string{"/usr/sbin", "/sbin", "/usr/bin", "/bin"} }

// lookTool finds a tool, without regard to PATH.
func lookTool(name string) (string, bool) {
	for _, dir := range toolDirs() {
		path := dir + "/" + name
		if stat, err := os.Stat(path); err == nil && stat.Mode().IsRegular() && stat.Mode().Perm()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

// afterKill is how long run waits for a tool that was told to stop: longer than a tool takes to die,
// unless it hangs in the kernel.
const afterKill = 2 * time.Second

// run runs a tool and returns when it ends or, soon after, when the context does: a tool that hangs in
// the kernel, or that must not be stopped, keeps the device's lock and is left to itself.
// Kinds: Unavailable when the tool cannot be started or the context ended; Busy when the tool still runs.
func run(ctx context.Context, c command) (result, error) {
	if err := ctx.Err(); err != nil {
		return result{}, backends.Errorf(backends.Unavailable, "%s was not begun: %w", c.tool, err)
	}
	path, ok := lookTool(c.tool)
	if !ok {
		return result{}, backends.Errorf(backends.Unsupported, "%s is not installed", c.tool)
	}
	var output tailBuffer
	cmd := exec.CommandContext(c.context(ctx), path, c.args...)
	cmd.Env = []string{"LC_ALL=C", "PATH=" + strings.Join(toolDirs(), ":")}
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.ExtraFiles = []*os.File{c.device.File}
	cmd.WaitDelay = afterKill / 2
	if c.gentle {
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 0
	}
	if err := cmd.Start(); err != nil {
		return result{}, backends.Errorf(backends.Unavailable, "starting %s: %w", path, err)
	}
	done := make(chan error, 1)
	ended := c.device.turn.keep() // a tool that outlives its request counts until it ends
	go func() {
		err := cmd.Wait()
		ended()
		done <- err
	}()
	over, err := await(ctx, done)
	switch {
	case !over:
		c.device.inherited = true
		return result{}, backends.Errorf(backends.Busy, "%s still works on %s: %w", c.tool, c.device.Name(), ctx.Err())
	case ctx.Err() != nil && cmd.ProcessState.ExitCode() != 0:
		return result{}, backends.Errorf(backends.Unavailable, "%s on %s was cut short: %w", c.tool, c.device.Name(), ctx.Err())
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return result{}, backends.Errorf(backends.Unavailable, "running %s: %w", c.tool, err)
	}
	return result{cmd.ProcessState.ExitCode(), output.String()}, nil
}

// context is what ends the tool: the request's context, or nothing.
func (c command) context(ctx context.Context) context.Context {
	if c.mustEnd {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// await waits for the end of a tool and, from the end of the context on, a little longer.
func await(ctx context.Context, done <-chan error) (ended bool, err error) {
	select {
	case err := <-done:
		return true, err
	case <-ctx.Done():
	}
	grace := time.NewTimer(afterKill)
	defer grace.Stop()
	select {
	case err := <-done:
		return true, err
	case <-grace.C:
		return false, nil
	}
}

// tailBuffer keeps the end of what a tool prints.
type tailBuffer struct{ b bytes.Buffer }

// keptWords is how much of a tool's output is kept for a message, in bytes.
const keptWords = 1024

// Write never fails.
func (t *tailBuffer) Write(p []byte) (int, error) {
	t.b.Write(p)
	if over := t.b.Len() - keptWords; over > 0 {
		t.b.Next(over)
	}
	return len(p), nil
}

// String is the output in one line.
func (t *tailBuffer) String() string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(t.b.String(), "")), " ")
}
