package chaos

import "golang.org/x/sys/unix"

// registers holds the number and the arguments of a call that is about to be made.
type registers struct {
	number uint64
	args   [6]uint64
}

// readCall reads the call at which a thread is stopped.
func readCall(tid int) (registers, error) {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return registers{}, err
	}
	return registers{r.Orig_rax, [6]uint64{r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9}}, nil
}

// failCall skips the call at which a thread is stopped, and makes it return the errno.
func failCall(tid int, errno unix.Errno) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return err
	}
	r.Orig_rax = ^uint64(0)
	r.Rax = -uint64(errno)
	return unix.PtraceSetRegs(tid, &r)
}

// oldCalls returns the calls that newer architectures do not have.
func oldCalls() []syscallInfo {
	return []syscallInfo{
		{unix.SYS_OPEN, "open", "p", 0}, {unix.SYS_STAT, "stat", "p", 0}, {unix.SYS_LSTAT, "lstat", "p", 0},
		{unix.SYS_MKDIR, "mkdir", "p", 0}, {unix.SYS_RMDIR, "rmdir", "p", 0}, {unix.SYS_UNLINK, "unlink", "p", 0},
		{unix.SYS_RENAME, "rename", "pp", 0}, {unix.SYS_SYMLINK, "symlink", "pp", 0}, {unix.SYS_READLINK, "readlink", "p", 0},
		{unix.SYS_CHMOD, "chmod", "p", 0}, {unix.SYS_CHOWN, "chown", "p", 0}, {unix.SYS_LCHOWN, "lchown", "p", 0},
		{unix.SYS_VFORK, "vfork", "", 0}, {unix.SYS_FORK, "fork", "", 0}, {unix.SYS_RENAMEAT, "renameat", "apap", 0},
	}
}
