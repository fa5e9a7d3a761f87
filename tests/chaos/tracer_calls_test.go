package chaos

import "golang.org/x/sys/unix"

// syscallInfo describes a system call that is a point, and its arguments: "a" is a directory's descriptor for the path
// after it, "p" a path, "f" a descriptor, "s" a string, "n" a number, "-" an irrelevant argument.
type syscallInfo struct {
	number uint64
	name   string
	args   string
	flags  int
}

// Special properties of a call.
const (
	writes   = 1 << iota // changes a file: only such a call is a point in a command
	onFile               // counts only on a file, device or kernel object, not on a pipe or socket
	onLock               // counts only for F_SETLEASE and F_OFD_SETLK
	onVfork              // counts only when it starts a process
	onEnding             // is a point in a command only
)

// endMark is the number with which the victim reports the end of its operation: prctl(endMark).
const endMark = 0x53746f77

// callTable lists the calls that affect the world outside the process.
func callTable() []syscallInfo {
	return append(oldCalls(), []syscallInfo{
		{unix.SYS_OPENAT, "openat", "ap", 0}, {unix.SYS_OPENAT2, "openat2", "ap", 0},
		{unix.SYS_MKDIRAT, "mkdirat", "ap", 0}, {unix.SYS_UNLINKAT, "unlinkat", "ap", 0},
		{unix.SYS_MKNODAT, "mknodat", "ap", 0},
		{unix.SYS_RENAMEAT2, "renameat2", "apap", 0}, {unix.SYS_SYMLINKAT, "symlinkat", "pap", 0},
		{unix.SYS_LINKAT, "linkat", "apap", 0},
		{unix.SYS_READLINKAT, "readlinkat", "ap", 0}, {unix.SYS_STATX, "statx", "ap", 0},
		{unix.SYS_NEWFSTATAT, "newfstatat", "ap", 0},
		{unix.SYS_FSTAT, "fstat", "f", onFile}, {unix.SYS_STATFS, "statfs", "p", 0}, {unix.SYS_FSTATFS, "fstatfs", "f", 0},
		{unix.SYS_GETDENTS64, "getdents64", "f", 0}, {unix.SYS_FACCESSAT, "faccessat", "ap", 0},
		{unix.SYS_FACCESSAT2, "faccessat2", "ap", 0},
		{unix.SYS_OPEN_TREE, "open_tree", "ap", 0}, {unix.SYS_MOVE_MOUNT, "move_mount", "apap", 0},
		{unix.SYS_MOUNT_SETATTR, "mount_setattr", "ap", 0},
		{unix.SYS_FSOPEN, "fsopen", "s", 0}, {unix.SYS_FSCONFIG, "fsconfig", "fns", 0}, {unix.SYS_FSMOUNT, "fsmount", "f", 0},
		{unix.SYS_FSPICK, "fspick", "ap", 0}, {unix.SYS_MOUNT, "mount", "pps", 0}, {unix.SYS_UMOUNT2, "umount2", "pn", 0},
		{unix.SYS_IOCTL, "ioctl", "fn", onFile | writes},
		{unix.SYS_PREAD64, "pread64", "f", onFile}, {unix.SYS_READ, "read", "f", onFile},
		{unix.SYS_READV, "readv", "f", onFile},
		{unix.SYS_PWRITE64, "pwrite64", "f", onFile | writes}, {unix.SYS_WRITE, "write", "f", onFile | writes},
		{unix.SYS_WRITEV, "writev", "f", onFile | writes}, {unix.SYS_PWRITEV, "pwritev", "f", onFile | writes},
		{unix.SYS_FSYNC, "fsync", "f", writes}, {unix.SYS_FDATASYNC, "fdatasync", "f", writes},
		{unix.SYS_SYNCFS, "syncfs", "f", writes},
		{unix.SYS_FTRUNCATE, "ftruncate", "f", writes}, {unix.SYS_FALLOCATE, "fallocate", "f", writes},
		{unix.SYS_COPY_FILE_RANGE, "copy_file_range", "f", writes}, {unix.SYS_SENDFILE, "sendfile", "f", writes},
		{unix.SYS_FCHMODAT, "fchmodat", "ap", 0}, {unix.SYS_FCHMODAT2, "fchmodat2", "ap", 0},
		{unix.SYS_FCHMOD, "fchmod", "f", 0},
		{unix.SYS_FCHOWNAT, "fchownat", "ap", 0}, {unix.SYS_FCHOWN, "fchown", "f", 0},
		{unix.SYS_UTIMENSAT, "utimensat", "ap", 0},
		{unix.SYS_SETXATTR, "setxattr", "ps", 0}, {unix.SYS_LSETXATTR, "lsetxattr", "ps", 0},
		{unix.SYS_FSETXATTR, "fsetxattr", "fs", 0},
		{unix.SYS_GETXATTR, "getxattr", "ps", 0}, {unix.SYS_LGETXATTR, "lgetxattr", "ps", 0},
		{unix.SYS_FGETXATTR, "fgetxattr", "fs", 0},
		{unix.SYS_REMOVEXATTR, "removexattr", "ps", 0}, {unix.SYS_LREMOVEXATTR, "lremovexattr", "ps", 0},
		{unix.SYS_FREMOVEXATTR, "fremovexattr", "fs", 0},
		{unix.SYS_FLOCK, "flock", "fn", 0}, {unix.SYS_FCNTL, "fcntl", "fnn", onLock},
		{unix.SYS_EXECVE, "execve", "p", 0}, {unix.SYS_CLONE, "clone", "", onVfork},
		{unix.SYS_WAIT4, "wait4", "", 0}, {unix.SYS_WAITID, "waitid", "", 0},
		{unix.SYS_KILL, "kill", "-n", 0}, {unix.SYS_PIDFD_SEND_SIGNAL, "pidfd_send_signal", "-n", 0},
		{unix.SYS_EXIT_GROUP, "exit_group", "", onEnding},
		{unix.SYS_PRCTL, "prctl", "n", 0},
	}...)
}

// isEnd reports whether a call marks the end of the operation.
func (r registers) isEnd() bool { return r.number == unix.SYS_PRCTL && r.args[0] == endMark }
