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
	device *lockedDevice // the tool inherits it, and the lock with it, should this process be killed
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

// afterKill is how long the output of a tool that was killed is waited for.
const afterKill = time.Second

// run runs a tool and returns when the tool has ended, not before: whoever locked the device may give it back then. The
// end of the context ends the tool and those that it started, or asks it to end, unless it must come to its own end.
// Kinds: Unavailable when the tool cannot be started or was cut short by the end of the context.
func run(ctx context.Context, c command) (result, error) {
	if err := ctx.Err(); err != nil {
		return result{}, backends.Errorf(backends.Unavailable, "%s was not begun: %w", c.tool, err)
	}
	path, ok := lookTool(c.tool)
	if !ok {
		return result{}, backends.Errorf(backends.Unsupported, "%s is not installed", c.tool)
	}
	var output tailBuffer
	cmd := c.prepare(ctx, path)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return result{}, backends.Errorf(backends.Unavailable, "starting %s: %w", path, err)
	}
	c.device.turn.runs(c.tool, cmd.Process.Pid)
	err := cmd.Wait()
	if ctx.Err() != nil && cmd.ProcessState.ExitCode() != 0 {
		return result{}, backends.Errorf(backends.Unavailable, "%s on %s was cut short: %w", c.tool, c.device.Name(),
			ctx.Err())
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return result{}, backends.Errorf(backends.Unavailable, "running %s: %w", c.tool, err)
	}
	return result{cmd.ProcessState.ExitCode(), output.String()}, nil
}

// prepare makes the process, in a group of its own: what interrupts this process at a terminal does not reach
// it, and its end is that of all that it started.
func (c command) prepare(ctx context.Context, path string) *exec.Cmd {
	cmd := exec.CommandContext(c.context(ctx), path, c.args...)
	cmd.Env = []string{"LC_ALL=C", "PATH=" + strings.Join(toolDirs(), ":")}
	cmd.ExtraFiles = []*os.File{c.device.File}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	word := syscall.SIGKILL
	cmd.WaitDelay = afterKill
	if c.gentle {
		word, cmd.WaitDelay = syscall.SIGTERM, 0
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, word) }
	return cmd
}

// context is what ends the tool: the request's context, or nothing.
func (c command) context(ctx context.Context) context.Context {
	if c.mustEnd {
		return context.WithoutCancel(ctx)
	}
	return ctx
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
