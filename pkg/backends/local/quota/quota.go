package quota

import (
	"errors"
	"math/rand/v2"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What linux/fs.h, linux/quota.h and linux/dqblk_xfs.h have, and golang.org/x/sys/unix has not. The numbers of the
// ioctls are those of the architectures that this driver is built for, amd64 and arm64.
const (
	getAttributes  = 0x801c581f // FS_IOC_FSGETXATTR
	setAttributes  = 0x401c5820 // FS_IOC_FSSETXATTR
	projectInherit = 0x200      // FS_XFLAG_PROJINHERIT

	getQuota  = 0x800007 // Q_GETQUOTA
	setQuota  = 0x800008 // Q_SETQUOTA
	getState  = 0x5808   // Q_XGETQSTATV
	ofProject = 2        // PRJQUOTA

	bytesValid = 1      // QIF_BLIMITS
	filesValid = 1 << 2 // QIF_ILIMITS
	block      = 1024   // QIF_DQBLKSIZE, of limits
	enforced   = 1 << 5 // FS_QUOTA_PDQ_ENFD
)

// attributes is struct fsxattr.
type attributes struct {
	flags, extent, extents, project, copyExtent uint32
	_                                           [8]byte
}

// usage is struct if_dqblk. Limits are in blocks, what is used in bytes.
type usage struct {
	hard, soft, bytes               uint64
	hardFiles, softFiles, files     uint64
	blocksGraceTime, filesGraceTime uint64
	valid                           uint32
	_                               [4]byte
}

// state is as much of struct fs_quota_statv as is looked at, and the room for the rest.
type state struct {
	version int8
	_       uint8
	flags   uint16
	_       [252]byte
}

// Enforced reports whether the filesystem of an open directory refuses what is beyond a project's limit.
func Enforced(dir *os.File) bool {
	found := state{version: 1}
	return control(dir, getState, 0, unsafe.Pointer(&found)) == nil && found.flags&enforced != 0
}

// first and last are the projects that are used: numbers that nobody picks by hand.
const (
	first = 1 << 30
	last  = 1<<31 - 1
)

// Take gives an open directory that is empty a project that nothing has, which all that is made in it inherits.
func Take(dir *os.File) (project uint32, err error) {
	for range 100 {
		project = first + rand.Uint32N(last-first) // a number that is free, not one that is secret
		found, err := read(dir, project)
		if err != nil {
			return 0, err
		}
		if found.hard|found.soft|found.bytes|found.hardFiles|found.softFiles|found.files == 0 {
			return project, assign(dir, project, projectInherit)
		}
	}
	return 0, errors.New("no project without a quota was found in 100 attempts")
}

// Leave takes an open directory out of its project. What is in it stays there.
func Leave(dir *os.File) error { return assign(dir, 0, 0) }

// Project is that of an open directory, if what is made in it inherits it; else 0.
func Project(dir *os.File) (uint32, error) {
	var found attributes
	if err := ioctl(dir, getAttributes, &found); err != nil || found.flags&projectInherit == 0 {
		return 0, err
	}
	return found.project, nil
}

// Limit bounds the bytes that a project may have on the filesystem of an open directory, which is not of the project,
// and in proportion to them its files; 0 for any number. One that has more files than its share keeps them, and has
// room to go on.
func Limit(dir *os.File, project uint32, bytes int64) error {
	wanted := usage{hard: uint64((bytes + block - 1) / block), valid: bytesValid | filesValid}
	if bytes > 0 {
		share, err := filesOf(dir, bytes)
		if err != nil {
			return err
		}
		found, err := read(dir, project)
		if err != nil {
			return err
		}
		wanted.hardFiles = max(share, found.files+found.files/8+leastFiles)
	}
	return control(dir, setQuota, project, unsafe.Pointer(&wanted))
}

const (
	leastFiles = 1024 // of a small volume
	// xfsFile is how many bytes there are for each file on an xfs, which makes inodes as it needs them and charges nobody
	// for the half KiB of each.
	xfsFile = 4096
)

// filesOf is how many of its filesystem's inodes are for so many bytes. An ext4 has a fixed number: one who takes more
// than a fair share with empty files leaves none to the neighbours.
func filesOf(dir *os.File, bytes int64) (uint64, error) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &stat); err != nil {
		return 0, &os.PathError{Op: "look at the filesystem of", Path: dir.Name(), Err: err}
	}
	perFile := uint64(xfsFile)
	if stat.Type != unix.XFS_SUPER_MAGIC && stat.Files > 0 {
		perFile = max(1, stat.Blocks*uint64(stat.Bsize)/stat.Files)
	}
	return max(leastFiles, uint64(bytes)/perFile), nil
}

// Bounded reports whether a project may have no more than it was given: so many bytes at least, and a number of files.
func Bounded(dir *os.File, project uint32, bytes int64) (bool, error) {
	found, err := read(dir, project)
	return int64(found.hard*block) >= bytes && found.hardFiles > 0, err
}

// Usage returns how many bytes a project has on the filesystem of an open directory, and how many it may; 0 for any
// number.
func Usage(dir *os.File, project uint32) (bytes, limit int64, err error) {
	found, err := read(dir, project)
	return int64(found.bytes), int64(found.hard * block), err
}

func assign(dir *os.File, project uint32, inherit uint32) error {
	var found attributes
	if err := ioctl(dir, getAttributes, &found); err != nil {
		return err
	}
	found.project, found.flags = project, found.flags&^projectInherit|inherit
	return ioctl(dir, setAttributes, &found)
}

// read returns what a project has. One of which nothing is known has nothing.
func read(dir *os.File, project uint32) (usage, error) {
	var found usage
	err := control(dir, getQuota, project, unsafe.Pointer(&found))
	if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	return found, err
}

func ioctl(dir *os.File, request uintptr, argument *attributes) error {
	_, _, failed := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), request, uintptr(unsafe.Pointer(argument)))
	if failed != 0 {
		return &os.PathError{Op: "set the project of", Path: dir.Name(), Err: failed}
	}
	return nil
}

// control is quotactl_fd(2), which Linux has since 5.14.
func control(dir *os.File, command uintptr, project uint32, argument unsafe.Pointer) error {
	_, _, failed := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), command<<8|ofProject, uintptr(project),
		uintptr(argument), 0, 0)
	if failed != 0 {
		return &os.PathError{Op: "ask for the project quota of the filesystem of", Path: dir.Name(), Err: failed}
	}
	return nil
}
