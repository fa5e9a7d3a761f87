package adversary

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// fewFiles starts the driver with a low limit of open files. It may refuse to start: that is no pool's fault.
func (w *world) fewFiles(f Fault) (func() error, error) {
	w.files = 8 + f.Draw%24
	if err := w.restart(w.setup.Config(w, Proper), nothing); err != nil {
		w.note("with %d files it does not start: %v", w.files, err)
	}
	w.files = 0
	return func() error { return w.again(Proper, nothing) }, nil
}

// noFiles lets the running process open only a few more files than it has open, as a leak elsewhere in it would.
func (w *world) noFiles(f Fault) (func() error, error) {
	w.alive.RLock()
	defer w.alive.RUnlock()
	pid := w.control.cmd.Process.Pid
	var usual unix.Rlimit
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err == nil {
		err = unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &usual)
	}
	if err != nil {
		return nil, err
	}
	few := unix.Rlimit{Cur: uint64(len(open)) + f.Draw%6, Max: usual.Max}
	return func() error { return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &usual, nil) },
		unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil)
}

// opener opens each loop device of a volume repeatedly, as udev and tools that list devices do, and holds a shared lock
// on a new one for some milliseconds.
func (w *world) opener(f Fault) (func() error, error) {
	ctx, stop := context.WithTimeout(w.life, f.For)
	var names atomic.Value
	names.Store([]string{})
	var opening sync.WaitGroup
	defer opening.Wait() // No device is open any more.
	opening.Go(func() {
		for ctx.Err() == nil {
			list, _ := names.Load().([]string)
			for _, name := range list {
				if file, err := os.Open("/dev/" + name); err == nil {
					_ = file.Close() // it was only read
				}
				<-time.After(200 * time.Microsecond)
			}
			<-time.After(200 * time.Microsecond)
		}
	})
	defer stop()
	for seen := map[string]string{}; ctx.Err() == nil && !w.failed(); <-time.After(5 * time.Millisecond) {
		for loop, backing := range w.loops() {
			if seen[loop] == backing {
				continue
			}
			seen[loop] = backing
			names.Store(slices.Collect(maps.Keys(seen)))
			hold(ctx, "/dev/"+loop)
		}
	}
	if opened, _ := names.Load().([]string); len(opened) == 0 {
		return nil, fmt.Errorf("there is no loop device: %w", errNotNow)
	}
	return nil, nil
}

// hold takes a shared lock on a device for some milliseconds.
func hold(ctx context.Context, device string) {
	file, err := os.Open(device)
	if err != nil {
		return
	}
	if ctx.Err() == nil && unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		<-time.After(5 * time.Millisecond)
	}
	_ = file.Close() // it was only read
}
