package machine

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// reaper starts processes, and waits for all children of process 1, including those that it did not start.
type reaper struct {
	mu       sync.Mutex // held from the start of a process until it is in the table
	children map[int]chan syscall.WaitStatus
}

func newReaper() *reaper {
	return &reaper{children: map[int]chan syscall.WaitStatus{}}
}

// run reaps until ctx is done.
func (r *reaper) run(ctx context.Context) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	defer signal.Stop(signals)
	for {
		for r.reap() {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
	}
}

// reap reaps one child that has ended, and reports whether there was one.
func (r *reaper) reap() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err != nil || pid <= 0 {
		return false
	}
	if ended, ok := r.children[pid]; ok {
		delete(r.children, pid)
		ended <- status
	}
	return true
}

// start starts a process. Its status is sent on the channel once it has ended.
func (r *reaper) start(argv []string, attr *os.ProcAttr) (*os.Process, <-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	process, err := os.StartProcess(argv[0], argv, attr)
	if err != nil {
		return nil, nil, err
	}
	ended := make(chan syscall.WaitStatus, 1)
	r.children[process.Pid] = ended
	return process, ended, nil
}
