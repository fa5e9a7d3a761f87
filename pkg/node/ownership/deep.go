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

// mostAlike is how many bytes of names of subdirectories at one position of a directory a level may keep in memory,
// with direntBytes more for each name.
const mostAlike, direntBytes = 8 << 10, 24

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

// readPart processes the next entries of the current directory except subdirectories, which it notes. It reads until
// the position changes: the walk finds its place again only between positions. Names with the same hash are at one
// position of an ext4, and the owner of a volume may choose a hash for which he can make up such names.
func (d *descent) readPart(ctx context.Context, here *level) error {
	before := here.next
	if _, err := unix.Seek(int(d.here.Fd()), before, io.SeekStart); err != nil {
		here.read = true
		return os.NewSyscallError("lseek", err)
	}
	for noted := 0; here.next == before && !here.read; {
		names, err := here.part(d.here)
		if err != nil {
			here.read = true
			return err
		}
		count := len(here.below)
		if err := d.each(ctx, here, names); err != nil {
			return err
		}
		for _, name := range here.below[count:] {
			noted += direntBytes + len(name)
		}
		if noted > mostAlike {
			return backends.Errorf(backends.Invalid,
				"too many directories are at one position of their parent, because their names have the same hash (more than "+
					"%d bytes of names): rename or move them, or give the ext4 another hash while it is unmounted "+
					"(tune2fs -E hash_alg=half_md4, then e2fsck -fD)", mostAlike)
		}
	}
	here.read = here.read || here.left <= 0
	return nil
}

// each processes the names of a part.
func (d *descent) each(ctx context.Context, here *level, names []string) error {
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
	return nil
}

// part reads the next names of the directory, and its new position.
func (l *level) part(dir *held) ([]string, error) {
	fd, buffer := int(dir.Fd()), make([]byte, partBytes)
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
