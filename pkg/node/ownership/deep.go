package ownership

import (
	"context"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// partBytes is how much of a directory is read at a time: what every level on the way down may keep in memory.
const partBytes = 2 << 10

// level is a directory on the way down that is not held open.
type level struct {
	id    identity
	below []string // subdirectories in the part that was read last, still to be processed
	next  int64    // the position of the next part
	read  bool     // whether there is no next part
	left  int64    // the most bytes of names that are still to be read
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
	if err := d.enter(); err != nil {
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
			err = d.down(name, depth)
		case !last.read:
			err = d.readPart(ctx, last)
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

// enter begins with the current directory.
func (d *descent) enter() error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(d.here.Fd()), &stat); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	d.levels = append(d.levels, level{id: identity{stat.Dev, stat.Ino}, left: d.nameBytes(stat)})
	return nil
}

// nameBytes returns the most bytes of names in a directory. A btrfs puts a new name, also that of a rename, at the end:
// without a bound, a walk beside a program that renames would not end. The size of its directories is two for each byte
// of a name, and the names that a directory had come first. A reader may miss an entry that is renamed meanwhile, as on
// other filesystems.
func (w *walker) nameBytes(stat unix.Stat_t) int64 {
	if w.isBtrfs {
		return stat.Size / 2
	}
	return math.MaxInt64
}

// readPart processes the next entries of the current directory except subdirectories, which it notes.
func (d *descent) readPart(ctx context.Context, here *level) error {
	names, err := here.part(d.here)
	if err != nil {
		here.read = true
		return err
	}
	for _, name := range names {
		here.left -= int64(len(name))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		stat, err := inspect(d.here, name)
		if err == nil && isType(stat, unix.S_IFDIR) {
			here.below = append(here.below, name)
		} else if err == nil {
			err = d.leaf(d.here, name, stat)
		}
		if err != nil && !changedMeanwhile(err) {
			return err
		}
	}
	here.read = here.read || here.left <= 0
	return nil
}

// part reads the next names of the directory, and its new position. The directory may have been opened again since.
func (l *level) part(dir *held) ([]string, error) {
	fd, buffer := int(dir.Fd()), make([]byte, partBytes)
	if _, err := unix.Seek(fd, l.next, io.SeekStart); err != nil {
		return nil, os.NewSyscallError("lseek", err)
	}
	n, err := unix.ReadDirent(fd, buffer)
	if err != nil {
		return nil, os.NewSyscallError("getdents", err)
	}
	l.read = n == 0
	if l.next, err = unix.Seek(fd, 0, io.SeekCurrent); err != nil {
		return nil, os.NewSyscallError("lseek", err)
	}
	_, _, names := unix.ParseDirent(buffer[:n], -1, nil)
	return names, nil
}

// down enters a subdirectory and processes it.
func (d *descent) down(name string, depth int) error {
	if depth+len(d.levels) > maxDepth {
		return tooDeep()
	}
	below, err := d.open(d.here, name)
	if err != nil {
		return err
	}
	d.leave()
	d.here = below
	return d.enter()
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
