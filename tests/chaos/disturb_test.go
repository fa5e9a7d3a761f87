package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// bench is a world in which a scenario is run repeatedly.
type bench struct {
	*world
	want     map[operation][]string // the observation after each operation
	origin   []string               // the observation before the disturbed operation
	pristine []string               // the observation when nothing is left
}

// outcome is the result of one fault.
type outcome struct {
	met       bool // the fault happened
	overran   bool // the operation did not end within its time
	violation string
	reply     *reply
}

// undisturbed runs the scenario without a fault, and returns the points.
func (b *bench) undisturbed(ctx context.Context) ([]point, error) {
	if err := b.reset(ctx); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	b.origin = b.observe()
	if b.torn {
		b.origin = b.pristine
	}
	var l listing
	t, err := b.victim(l.plan)
	if err == nil {
		err = t.run()
	}
	if err == nil {
		err = t.drain()
	}
	if err != nil {
		return nil, err
	}
	if r := b.readReply(); r == nil || !r.OK {
		output, _ := os.ReadFile(b.path(outputFile))
		return nil, fmt.Errorf("the undisturbed operation failed: %+v; %s", r, output)
	}
	b.want = map[operation][]string{b.op: b.observe()}
	for _, op := range b.after() {
		if err := b.call(ctx, op); err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		b.want[op] = b.observe()
	}
	if left := difference(b.pristine, b.want[unstage]); left != "" {
		return nil, fmt.Errorf("the undisturbed run leaves something:%s", left)
	}
	return l.points, b.sound(ctx)
}

// disturb runs the scenario with one fault, and takes the volume through the rest of its life.
func (b *bench) disturb(ctx context.Context, f fault, giveUp bool) (o outcome, err error) {
	if err := b.reset(ctx); err != nil {
		return o, fmt.Errorf("prepare: %w", err)
	}
	snare := &trap{fault: f}
	t, err := b.victim(snare.plan)
	if err != nil {
		return o, err
	}
	watchdog := time.AfterFunc(victimTime, t.killAll)
	defer watchdog.Stop()
	if err := t.run(); err != nil {
		return o, err
	}
	o.met, o.overran, o.reply = snare.met, t.overran, b.readReply()
	r := &recovery{bench: b, fault: f, tried: make(chan struct{}), drained: make(chan struct{})}
	done := make(chan string)
	survivors := len(t.tasks) > 0
	if !survivors {
		close(r.drained)
	}
	go func() { done <- r.run(ctx, o.reply, giveUp) }()
	if survivors {
		<-r.tried
		if err := t.drain(); err != nil {
			return o, err
		}
		close(r.drained)
	}
	o.violation = <-done
	if o.violation == "" && !watchdog.Stop() {
		o.violation = "the operation, or a command of it, hung and had to be killed"
	}
	return o, nil
}

// victimTime limits a disturbed operation, and the processes that it leaves running.
const victimTime = 2 * time.Minute

// killAll kills all traced processes. Any thread may call it.
func (t *tracer) killAll() {
	_ = unix.Kill(t.victim, unix.SIGKILL) // it may be gone
	for _, group := range t.groups() {
		_ = unix.Kill(group, unix.SIGKILL) // it may be gone
	}
}

// recovery makes the calls that an orchestrator makes after a failed call.
type recovery struct {
	*bench
	fault   fault
	calls   int
	tried   chan struct{} // closed after the first call
	drained chan struct{} // closed when the processes that survived the victim have ended
}

// run returns a description of the violation, or an empty string if there is none.
func (r *recovery) run(ctx context.Context, answer *reply, giveUp bool) string {
	defer func() {
		if r.calls == 0 {
			close(r.tried)
		}
	}()
	if answer != nil && answer.OK {
		if diff := difference(r.withoutStaleNotes(slices.Clone(r.want[r.op])), r.withoutStaleNotes(r.seen())); diff != "" {
			return "it said that it had succeeded, but:" + diff
		}
	}
	if err := r.finish(ctx, giveUp && r.undo() != ""); err != nil {
		return err.Error()
	}
	if err := r.sound(ctx); err != nil {
		return err.Error()
	}
	if children := children(); children != "" {
		return "processes are left: " + children
	}
	return ""
}

// children lists the children of this process, which belong to the calls of the recovery: the victim's own have ended
// once the tracer has drained them (proc_pid_stat(5)).
func children() string {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	parent := fmt.Sprintf(" %d ", os.Getpid())
	var all []string
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // gone
		}
		// pid (name) state ppid
		_, rest, _ := strings.Cut(string(stat), ") ")
		if len(rest) > 1 && strings.HasPrefix(rest[1:], parent) {
			all = append(all, string(stat[:min(len(stat), 40)]))
		}
	}
	return strings.Join(all, "; ")
}

// finish takes the volume through the rest of its life.
func (r *recovery) finish(ctx context.Context, giveUp bool) error {
	if giveUp {
		if err := r.repeat(ctx, r.undo()); err != nil {
			return fmt.Errorf("taken back: %w", err)
		}
		if diff := difference(r.origin, r.withoutIntent(r.seen())); diff != "" {
			return fmt.Errorf("after it was taken back:%s", diff)
		}
	}
	for _, op := range append([]operation{r.op}, r.after()...) {
		if err := r.repeat(ctx, op); err != nil {
			return err
		}
		if diff := difference(r.want[op], r.seen()); diff != "" {
			return fmt.Errorf("after %s was repeated:%s", op, diff)
		}
	}
	return nil
}

// seen returns the observation without the folder for release notes, which the driver creates on first use. A note that
// a volume is in use counts as the volume's even if it is in the data directory, where it may be if its pool had no
// space for it.
func (r *recovery) seen() []string {
	lines := slices.DeleteFunc(r.observe(), func(line string) bool { return line == "pool file ~/pool/released" })
	if f := r.fault; f.kind == failure && f.errno == unix.ENOSPC && strings.HasSuffix(f.point.label(), "/in-use)") {
		for i, line := range lines {
			if line == "pool file ~/pool/in-use/"+r.handle() {
				lines[i] = newDescriber(r.root).normalise("pool file " + filepath.Join(filepath.Dir(r.data()), "in-use"))
			}
		}
	}
	return lines
}

// withoutStaleNotes removes the notes of a volume's use if their change failed: unstaging must not fail because of a
// note, and an unmounted volume is known to be unmounted. If a pool does not answer when it is read, it is unknown
// whether it has a note, so that the release is noted too. The next call must remove these notes.
func (r *recovery) withoutStaleNotes(lines []string) []string {
	call := r.fault.point.label()
	isNote := strings.Contains(call, "~/state/<volume>.json") || strings.Contains(call, "/in-use")
	isLook := strings.Contains(call, "newfstatat(~/pool/pools/")
	if !isNote && !isLook || r.fault.kind != failure || r.op != unstage && r.op != unpublish {
		return lines
	}
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "pool file ~/pool/released/") || isNote &&
			(strings.HasPrefix(line, "state file ~/state/<volume>.json") || strings.HasSuffix(line, "/in-use"))
	})
}

// withoutIntent removes the record of the volume's repair or growth. It outlives the undo: the device is in an
// intermediate state, which only the record shows.
func (r *recovery) withoutIntent(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		return (r.grownMiB > 0 || r.dirty) && strings.HasPrefix(line, "state file ~/state/repairing/")
	})
}

// The limits of an orchestrator's retries. Busy and Unavailable mean that waiting helps: such a call may take as many
// tries as fit into a time that is sufficient on any busy machine.
const (
	tries     = 3
	waitTime  = 2 * time.Minute
	waitPause = 20 * time.Millisecond
)

// repeat repeats a call until it succeeds.
func (r *recovery) repeat(ctx context.Context, op operation) error {
	for firm, waits, end := 0, 0, time.Now().Add(waitTime); ; {
		err := r.call(ctx, op)
		r.afterCall()
		if err == nil {
			return nil
		}
		if kind := backends.KindOf(err); kind == backends.Busy || kind == backends.Unavailable {
			waits++
		} else {
			firm++
		}
		if firm >= tries || time.Now().After(end) {
			return fmt.Errorf("%s still fails after %d tries: %w", op, firm+waits, err)
		}
		<-time.After(waitPause)
	}
}

// afterCall lets the processes that survived the victim continue after the first call has met them.
func (r *recovery) afterCall() {
	if r.calls++; r.calls == 1 {
		close(r.tried)
		<-r.drained
	}
}

// sound checks for damage with the filesystem's own tools, without repair.
func (b *bench) sound(ctx context.Context) error {
	if b.form != image {
		return nil
	}
	argv := map[string][]string{
		"ext4":  {"e2fsck", "-fn", b.data()},
		"xfs":   {"xfs_repair", "-nf", b.data()},
		"btrfs": {"btrfs", "check", "--readonly", b.data()},
	}[b.fsType]
	output, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the filesystem is damaged: %s: %w: %s", strings.Join(argv, " "), err, output)
	}
	return nil
}

// sweep removes the leftovers of a violation.
func (b *bench) sweep(ctx context.Context) error {
	for range 3 {
		for _, m := range b.mountPoints() {
			_ = unix.Unmount(m.Mountpoint, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) // gone with another
		}
	}
	for _, dir := range b.loopDirs() {
		_ = free(filepath.Base(dir)) // free by now
	}
	for _, path := range []string{b.path("pool"), b.path("volumes")} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return ctx.Err()
}
