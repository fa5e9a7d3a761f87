package chaos

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The classic BPF instructions of the filter (linux/bpf_common.h, linux/seccomp.h).
const (
	loadWord    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpIfEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	answer      = unix.BPF_RET | unix.BPF_K
)

// traceMe makes all threads of this process, and all processes that they start, stop at the calls of the table from now
// on. Without a tracer those calls fail with ENOSYS.
func traceMe() error {
	filter := traceFilter()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp(SECCOMP_SET_MODE_FILTER): %w", errno)
	}
	return nil
}

// traceFilter checks the number of a call, which is the first word of struct seccomp_data.
func traceFilter() []unix.SockFilter {
	filter := []unix.SockFilter{{Code: loadWord}}
	for _, info := range callTable() {
		filter = append(filter,
			unix.SockFilter{Code: jumpIfEqual, Jf: 1, K: uint32(info.number)},
			unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_TRACE})
	}
	return append(filter, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW})
}

// endOfOperation reports the end of the operation to the tracer.
func endOfOperation() {
	_, _, _ = unix.Syscall(unix.SYS_PRCTL, endMark, 0, 0) // fails with EINVAL, but the tracer sees it
}
