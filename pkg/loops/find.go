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

// strangersTime bounds the time for asking all the devices that hold a file of another name; half of what
// is left of the request's time if that is less.
const strangersTime = 2 * time.Second

// Holding returns the loop devices that hold the file: path names it, and fd is a descriptor of it, perhaps
// with O_PATH. Those are asked first whose file has the name, in a directory of the same name; only when
// none of them holds the file, which is attached under another name or not at all then, are the others asked
// too, all at once.
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

// answer is what a device says.
type answer struct {
	file inode
	ok   bool
}

// ask asks one device and notes it if it holds the file.
func (s *search) ask(ctx context.Context, d Device) error {
	got, err := deadline.Do(ctx, deadline.Call{Name: "asking " + d.Path + " what it holds"},
		func(context.Context) (answer, error) {
			file, ok, err := d.held()
			return answer{file, ok}, err
		}, nil)
	if err == nil && got.ok && got.file == s.file {
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
			if errors.Is(err, unix.EIO) { // A FUSE server that is just dying, perhaps; from then on it is ENOTCONN.
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

// shareOf is the part of the request's time that goes to the devices of others.
func shareOf(ctx context.Context) time.Duration {
	until, limited := ctx.Deadline()
	if !limited {
		return strangersTime
	}
	return min(strangersTime, time.Until(until)/2)
}
