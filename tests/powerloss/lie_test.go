package powerloss

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lie is a planted bug: the backend's syncs of one sort succeed without effect, as if the code had none. The kernel
// does this, with a filter on the system calls of the process (seccomp(2)), so that the shipped code is tested.
type lie string

const (
	noLie      lie = ""           // all syncs take effect
	records    lie = "records"    // those of record.json, and of its replacements
	images     lie = "images"     // those of images, new and grown
	drafts     lie = "drafts"     // those of the folders of volumes, snapshots and groups in creation
	shelves    lie = "folders"    // those of volumes/, snapshots/, groups/ and retained/
	owners     lie = "owners"     // those of the folders of volumes, after their records were replaced
	trees      lie = "trees"      // those of copies of directories: syncfs(2)
	everything lie = "everything" // all
)

// during runs the call while the lie is active, on all threads of the call.
func (l lie) during(call func() error) error {
	if l == noLie {
		return call()
	}
	told, err := liar()
	if err != nil {
		return err
	}
	told.Store(&l)
	defer told.Store(nil)
	return call()
}

// liar makes the kernel ask about the syncs of this process from now on, and applies the stored lie. A filter stays as
// long as its process, and only one such filter is possible.
//
//nolint:gochecknoglobals // A filter is its process's, and a second test of the process needs the first one's.
var liar = sync.OnceValues(func() (*atomic.Pointer[lie], error) {
	listener, err := filterSyncs()
	if err != nil {
		return nil, err
	}
	told := &atomic.Pointer[lie]{}
	go func() {
		for {
			answer(listener, told)
		}
	}()
	return told, nil
})

// filterSyncs makes the kernel ask about each fsync(2), fdatasync(2) and syncfs(2) of all threads.
func filterSyncs() (listener int, err error) {
	const load, equal, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K
	program := []unix.SockFilter{
		{Code: load, K: 0}, // seccomp_data.nr
		{Code: equal, K: unix.SYS_FSYNC, Jt: 3},
		{Code: equal, K: unix.SYS_FDATASYNC, Jt: 2},
		{Code: equal, K: unix.SYS_SYNCFS, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF},
	}
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC |
		unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&header)))
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

// reply is struct seccomp_notif_resp.
type reply struct {
	id     uint64
	result int64
	errno  int32
	flags  uint32
}

// answer waits for the next sync, and either lets it run or reports success without it. An interrupted thread no longer
// waits for the answer, and asks again.
func answer(listener int, told *atomic.Pointer[lie]) {
	events := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	if _, err := unix.Poll(events, -1); err != nil {
		return
	}
	var q question
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV,
		uintptr(unsafe.Pointer(&q))); errno != 0 {
		return
	}
	a := reply{id: q.id}
	if l := told.Load(); l == nil || !l.hides(int(q.args[0]), q.nr) {
		a.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	// If the thread no longer waits, the answer is lost.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
}

// hides reports whether the lie suppresses a sync of the descriptor.
func (l lie) hides(fd int, call int32) bool {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return l == everything || err == nil && l == sortOf(path, call)
}

// sortOf returns the sort of a sync, by the path of the synced file.
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
