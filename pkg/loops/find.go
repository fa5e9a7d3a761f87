package loops

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// strangersTime bounds the time for asking the devices that hold a file of another name. The bound is half of the rest
// of the request's time if that is less.
const strangersTime = 2 * time.Second

// Holding returns the loop devices that hold the file. path is its name, and fd is a descriptor of it, perhaps with
// O_PATH. Holding first asks the devices whose file has the same name, in a directory of the same name. If none of them
// holds the file, the file is attached under another name or not at all; only then does it ask the others too, all at
// once.
//
// Kinds: Unavailable when a device does not answer that may hold the file, or the context ends first.
func Holding(ctx context.Context, fd int, path string) ([]Device, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, failure.Errorf(failure.Unavailable, "looking at %q: %w", path, err)
	}
	all, err := Attached()
	if err != nil {
		return nil, err
	}
	s := search{path: path, file: inode{stat.Dev, stat.Ino}}
	var others []Device
	for _, d := range all {
		if !d.Named(path) {
			others = append(others, d)
			continue
		}
		if err := s.ask(ctx, d); err != nil {
			return nil, err
		}
	}
	if len(s.found) == 0 {
		err = s.askOthers(ctx, others)
	}
	return s.found, err
}

// search is one call of Holding.
type search struct {
	path string
	file inode

	mu     sync.Mutex
	found  []Device
	silent []unanswered
}

// unanswered is a device that did not say what it holds.
type unanswered struct {
	Device
	err error
}

// ask asks one device and notes it if it holds the file.
func (s *search) ask(ctx context.Context, d Device) error {
	got, err := deadline.Do(ctx, deadline.Call{Name: "asking " + d.Path + " what it holds"},
		func(context.Context) (answer, error) { return d.held() }, nil)
	if err == nil && got.ok && got.file == s.file {
		d.Sequence = got.sequence
		s.mu.Lock()
		defer s.mu.Unlock()
		s.found = append(s.found, d)
	}
	return err
}

// askOthers asks devices whose file has another name, and judges those that do not answer.
func (s *search) askOthers(ctx context.Context, devices []Device) error {
	if len(devices) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, shareOf(ctx))
	defer cancel()
	var group sync.WaitGroup
	for _, d := range devices {
		group.Go(func() {
			err := s.ask(limited, d)
			if errors.Is(err, unix.EIO) { // Perhaps a FUSE server that is just dying; from then on it is ENOTCONN.
				err = s.ask(limited, d)
			}
			if err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.silent = append(s.silent, unanswered{d, err})
			}
		})
	}
	group.Wait()
	return s.judge(ctx)
}

// shareOf returns the part of the request's time for asking the other devices.
func shareOf(ctx context.Context) time.Duration {
	until, limited := ctx.Deadline()
	if !limited {
		return strangersTime
	}
	return min(strangersTime, time.Until(until)/2)
}
