package ownership

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// level is a directory on the way down that is not held open.
type level struct {
	id    identity
	below []string // its subdirectories that are still to be processed
}

// identity distinguishes a directory from all others of the filesystem.
type identity struct{ device, inode uint64 }

// descent processes everything below a directory sequentially and with two descriptors, and releases the directory. It
// goes back up through "..". If that is not the directory from which it came, the walk ends.
type descent struct {
	*walker
	top, here *held
	levels    []level
}

// walkDeep processes everything below a directory at a depth at which no more directories can be held open.
func (w *walker) walkDeep(ctx context.Context, top *held, depth int) error {
	defer top.release()
	d := &descent{walker: w, top: top, here: top}
	defer func() { d.leave() }()
	if err := d.enter(ctx); err != nil {
		return err
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		last := &d.levels[len(d.levels)-1]
		var err error
		switch {
		case len(last.below) > 0:
			name := last.below[0]
			last.below = last.below[1:]
			err = d.down(ctx, name, depth)
		case len(d.levels) == 1:
			return nil
		default:
			err = d.up()
		}
		if err != nil && !changedMeanwhile(err) {
			return err
		}
	}
}

// enter processes the entries of the directory except subdirectories, which it notes.
func (d *descent) enter(ctx context.Context) error {
	id, err := identify(d.here)
	if err != nil {
		return err
	}
	d.levels = append(d.levels, level{id: id})
	below := &d.levels[len(d.levels)-1].below
	for {
		names, err := d.here.Readdirnames(batch)
		for _, name := range names {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			stat, err := inspect(d.here, name)
			if err == nil && isType(stat, unix.S_IFDIR) {
				*below = append(*below, name)
			} else if err == nil {
				err = d.leaf(d.here, name, stat)
			}
			if err != nil && !changedMeanwhile(err) {
				return err
			}
		}
		if errors.Is(err, io.EOF) || err != nil && changedMeanwhile(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// down enters a subdirectory and processes it.
func (d *descent) down(ctx context.Context, name string, depth int) error {
	if depth+len(d.levels) > maxDepth {
		return tooDeep()
	}
	below, err := d.open(d.here, name)
	if err != nil {
		return err
	}
	d.leave()
	d.here = below
	return d.enter(ctx)
}

// up returns to the parent directory.
func (d *descent) up() error {
	d.levels = d.levels[:len(d.levels)-1]
	if len(d.levels) == 1 {
		d.leave()
		d.here = d.top
		return nil
	}
	fd, err := openBelow(d.here, "..", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return movedAway(err)
	}
	above := hold(os.NewFile(uintptr(fd), ".."), true)
	d.leave()
	d.here = above
	if id, err := identify(above); err != nil || id != d.levels[len(d.levels)-1].id {
		return movedAway(err)
	}
	return nil
}

// leave closes the current directory, unless it is the top.
func (d *descent) leave() {
	if d.here != d.top {
		d.here.release()
	}
}

// movedAway returns the error for a lost way back.
func movedAway(err error) error {
	const text = "directories were moved while they were given to the group: it is begun again with the next call"
	if err != nil {
		return backends.Errorf(backends.Unavailable, text+": %v", err)
	}
	return backends.Errorf(backends.Unavailable, text)
}

func identify(dir *held) (identity, error) {
	var stat unix.Stat_t
	err := unix.Fstat(int(dir.Fd()), &stat)
	return identity{stat.Dev, stat.Ino}, os.NewSyscallError("fstat", err)
}
