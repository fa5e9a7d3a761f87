package powerloss

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lie is a planted bug: the backend's syncs of one sort succeed and do nothing, as though the code had none. The kernel does it,
// by a filter on the system calls of one thread (seccomp(2)), so that what is tested is what is shipped.
type lie string

const (
	noLie      lie = ""           // all syncs are made
	records    lie = "records"    // those of record.json, and of what replaces it
	images     lie = "images"     // those of images, new and grown
	drafts     lie = "drafts"     // those of the folders of what is being made
	shelves    lie = "folders"    // those of volumes/, snapshots/, groups/ and retained/
	owners     lie = "owners"     // those of the folders of volumes, after their records were replaced
	trees      lie = "trees"      // those of copies of directories: syncfs(2)
	everything lie = "everything" // all
)

// during runs the call on a thread of its own, which ends with it.
func (l lie) during(call func() error) error {
	if l == noLie {
		return call()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread ends with the goroutine, and the filter with the thread.
		listener, err := filterSyncs()
		if err != nil {
			done <- err
			return
		}
		go l.serve(listener)
		done <- call()
	}()
	return <-done
}

// filterSyncs has the kernel ask about each fsync(2), fdatasync(2) and syncfs(2) of this thread.
func filterSyncs() (listener int, err error) {
	const load, equal, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	program := []unix.SockFilter{
		{Code: load, K: 0}, // seccomp_data.nr
		{Code: equal, K: unix.SYS_FSYNC, Jt: 3},
		{Code: equal, K: unix.SYS_FDATASYNC, Jt: 2},
		{Code: equal, K: unix.SYS_SYNCFS, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF},
	}
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&header)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// question is struct seccomp_notif of seccomp_unotify(2).
type question struct {
	id          uint64
	pid, flags  uint32
	nr          int32
	arch        uint32
	instruction uint64
	args        [6]uint64
}

// answer is struct seccomp_notif_resp.
type answer struct {
	id     uint64
	result int64
	errno  int32
	flags  uint32
}

// serve answers until the thread has ended.
func (l lie) serve(listener int) {
	defer func() { _ = unix.Close(listener) }() // The filter is gone.
	for {
		events := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(events, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if events[0].Revents&unix.POLLHUP != 0 {
			return
		}
		if events[0].Revents&unix.POLLIN != 0 {
			l.answer(listener)
		}
	}
}

// answer lets a sync be made, or says that it has been. A thread that was interrupted has gone, and asks again.
func (l lie) answer(listener int) {
	var q question
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&q))); errno != 0 {
		return
	}
	a := answer{id: q.id}
	if !l.hides(int(q.args[0]), q.nr) {
		a.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	// When the thread has gone, nobody waits for the answer.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
}

// hides tells whether a sync of the descriptor is not made.
func (l lie) hides(fd int, call int32) bool {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return l == everything || err == nil && l == sortOf(path, call)
}

// sortOf is the sort of a sync, by the path of what is synced.
func sortOf(path string, call int32) lie {
	if call == unix.SYS_SYNCFS {
		return trees
	}
	info, err := os.Lstat(path)
	if err != nil {
		return noLie
	}
	parent := filepath.Base(filepath.Dir(path))
	switch base := filepath.Base(path); {
	case base == "image" && !info.IsDir():
		return images
	case base == "record.json", parent == "staging" && !info.IsDir():
		return records
	case strings.Contains(path, "/staging/"):
		return drafts
	case parent == "volumes":
		return owners
	case base == "volumes", base == "snapshots", base == "groups", base == "retained":
		return shelves
	}
	return noLie
}
