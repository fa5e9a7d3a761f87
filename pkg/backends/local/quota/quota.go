package quota

import (
	"errors"
	"math/rand/v2"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of linux/fs.h, linux/quota.h and linux/dqblk_xfs.h that golang.org/x/sys/unix lacks. The numbers of the
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

// usage is struct if_dqblk. Limits are in blocks, usage is in bytes.
type usage struct {
	hard, soft, bytes               uint64
	hardFiles, softFiles, files     uint64
	blocksGraceTime, filesGraceTime uint64
	valid                           uint32
	_                               [4]byte
}

// state has the fields of struct fs_quota_statv that are used, and space for the rest.
type state struct {
	version int8
	_       uint8
	flags   uint16
	_       [252]byte
}

// Enforced reports whether the filesystem of an open directory enforces the limits of projects.
func Enforced(dir *os.File) bool {
	found := state{version: 1}
	return control(dir, getState, 0, unsafe.Pointer(&found)) == nil && found.flags&enforced != 0
}

// first and last are the range of projects in use: numbers that people do not pick by hand.
const (
	first = 1 << 30
	last  = 1<<31 - 1
)

// Take assigns an unused project to an open, empty directory. Everything created in it inherits the project.
func Take(dir *os.File) (project uint32, err error) {
	for range 100 {
		project = first + rand.Uint32N(last-first) // The number must be free, not secret.
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

// Leave removes an open directory from its project. Its contents stay in it.
func Leave(dir *os.File) error { return assign(dir, 0, 0) }

// Project returns the project of an open directory, if new files in it inherit the project; else 0.
func Project(dir *os.File) (uint32, error) {
	var found attributes
	if err := ioctl(dir, getAttributes, &found); err != nil || found.flags&projectInherit == 0 {
		return 0, err
	}
	return found.project, nil
}

// Limit bounds the bytes that a project may have on the filesystem of an open directory, which is not in the project,
// and in proportion to them its files; 0 for any number. A project with more files than its share keeps them, and may
// add some.
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
	// xfsFile is how many bytes of quota allow one file on an xfs, which creates inodes on demand and charges no project
	// for the half KiB of each.
	xfsFile = 4096
)

// filesOf is how many of its filesystem's inodes belong to the given number of bytes. An ext4 has a fixed number of
// inodes: a volume that takes more than its fair share with empty files would leave none for the others.
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

// Bounded reports whether a project has limits: one of at least the given number of bytes, and one of any number of
// files.
func Bounded(dir *os.File, project uint32, bytes int64) (bool, error) {
	found, err := read(dir, project)
	return int64(found.hard*block) >= bytes && found.hardFiles > 0, err
}

// Usage returns how many bytes a project has on the filesystem of an open directory, and its limit; 0 for no limit.
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

// read returns the usage of a project. An unknown project has no usage.
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

// control calls quotactl_fd(2), which Linux has since 5.14.
func control(dir *os.File, command uintptr, project uint32, argument unsafe.Pointer) error {
	_, _, failed := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), command<<8|ofProject, uintptr(project),
		uintptr(argument), 0, 0)
	if failed != 0 {
		return &os.PathError{Op: "ask for the project quota of the filesystem of", Path: dir.Name(), Err: failed}
	}
	return nil
}
