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
	device *lockedDevice // the tool inherits it with the lock, which survives a kill of this process
	// mustEnd keeps the tool running when the context ends. gentle asks the tool to stop instead of killing it.
	mustEnd, gentle bool
}

// result is how a tool ended.
type result struct {
	code  int    // the exit code; -1 when a signal ended it
	words string // the end of its output
}

// toolDirs returns the directories in which Debian keeps filesystem tools.
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

// afterKill is how long to wait for the output of a killed tool.
const afterKill = time.Second

// run runs a tool and returns only when the tool has ended, so that the caller may then release the device's lock. The
// end of the context kills the tool and its children, or asks them to end, unless the tool must run to its end. Kinds:
// Unsupported when the tool is not installed; Unavailable when it cannot be started or was cut short by the end of the
// context.
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

// prepare creates the process in a group of its own. An interrupt of this process at a terminal does not reach the
// group, and a signal to the group ends the tool and its children.
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

// context returns the context that ends the tool: the request's context, or one that never ends.
func (c command) context(ctx context.Context) context.Context {
	if c.mustEnd {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// tailBuffer keeps the end of a tool's output.
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

// String returns the output in one line.
func (t *tailBuffer) String() string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(t.b.String(), "")), " ")
}
