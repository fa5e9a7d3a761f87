package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// victimMode and workerMode, as first arguments, make this program a victim or a worker.
const (
	victimMode = "chaos-victim"
	workerMode = "chaos-worker"
)

// outputFile receives a victim's standard output and error.
const outputFile = "victim-output"

// reply is the result of the disturbed operation.
type reply struct {
	OK   bool
	Kind string
	Text string
}

func (w *world) replyFile() string { return w.path("victim-reply") }

// readReply returns the result of the last victim's operation, or nil if it was killed before the end.
func (w *world) readReply() *reply {
	data, err := os.ReadFile(w.replyFile())
	if err != nil {
		return nil
	}
	var r reply
	if json.Unmarshal(data, &r) != nil {
		return nil
	}
	return &r
}

// victimEnvironment makes the order of system calls repeatable.
func victimEnvironment() []string {
	return []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
}

// runVictim makes the disturbed call. It is the main function of a victim.
func runVictim(name, root, plant string) int {
	s, ok := find(name)
	if !ok {
		fmt.Fprintf(os.Stderr, "there is no scenario %q\n", name)
		return 1
	}
	w := &world{scenario: s, root: root, plant: plant}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	service, err := w.warmUp(ctx, cancel)
	if err == nil {
		err = traceMe()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = w.do(ctx, service, w.op)
	endOfOperation()
	return w.answer(err)
}

// warmUp does all one-time work of a process.
func (w *world) warmUp(ctx context.Context, cancel func()) (operator, error) {
	late := make(chan os.Signal, 1)
	signal.Notify(late, unix.SIGUSR1)
	go func() {
		<-late
		cancel()
	}()
	// The first command of a process probes the kernel's features.
	if err := exec.CommandContext(ctx, "/bin/true").Run(); err != nil {
		return nil, err
	}
	w.at()
	s, _, err := w.service(ctx) // it ends with the process
	return s, err
}

// answer writes the operation's result to a file.
func (w *world) answer(err error) int {
	r := reply{OK: err == nil}
	if err != nil {
		r.Kind, r.Text = backends.KindOf(err).String(), err.Error()
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(w.replyFile(), data, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func find(name string) (scenario, bool) {
	for _, s := range scenarios() {
		if s.name == name {
			return s, true
		}
	}
	return scenario{}, false
}

// victim starts the disturbed operation; the calling thread is locked.
func (w *world) victim(p plan) (*tracer, error) {
	if err := errors.Join(os.RemoveAll(w.replyFile()), w.drawCurtain()); err != nil {
		return nil, err
	}
	output, err := os.Create(filepath.Join(w.root, outputFile))
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }() // the victim has its own
	argv := []string{os.Args[0], victimMode, w.name, w.root, w.plant}
	return startTraced(argv, victimEnvironment(), output, newDescriber(w.root), func(c call) action {
		if c.args == sysBlock {
			_ = w.drawCurtain() // an outdated curtain only shows or hides other processes' devices
		}
		return p(c)
	})
}
