package mount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
)

// Propagation remembers the mounts below which new mounts also show in the host's mount namespace. The zero value is
// ready to use.
type Propagation struct {
	mu     sync.Mutex
	shared map[uint64]bool // by the mount's unique ID
}

// Check refuses a directory below which new mounts would not be visible to others: a user in another mount namespace
// would write to the directory below the mount. Check accepts a missing directory, which the mount itself refuses.
// Kinds: Unavailable, with the cure.
func (p *Propagation) Check(ctx context.Context, dir string) error {
	call := deadline.Call{Name: fmt.Sprintf("looking at the propagation of mounts at %q", dir)}
	return deadline.Run(ctx, call, func(context.Context) error { return p.check(dir) })
}

func (p *Propagation) check(dir string) error {
	unique := uniqueMount(dir)
	if p.knows(unique) {
		return nil
	}
	state, err := glance(dir, unix.AT_STATX_DONT_SYNC)
	if err != nil || !state.Exists {
		return err
	}
	found, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return uint64(m.ID) != state.MountID, uint64(m.ID) == state.MountID
	})
	if err != nil || len(found) == 0 {
		return backends.Errorf(backends.Unavailable,
			"cannot tell whether mounts at %s show outside of this container: the mount %d: %w", dir, state.MountID, err)
	}
	if !sharedMount(found[0]) {
		return backends.Errorf(backends.Unavailable,
			"what is mounted at %s would not show outside of this container, and pods would write to the node's own disk: "+
				"the mount %s lacks propagation: set mountPropagation: Bidirectional for the volumeMount of the kubelet's "+
				"directory in the driver's pod, "+
				"and see to it that the directory is on a shared mount of the node (mount --make-rshared /)", dir,
			found[0].Mountpoint)
	}
	if uniqueMount(dir) == unique { // The mount is the one that was looked at.
		p.remember(unique)
	}
	return nil
}

// uniqueMount returns the ID of the mount that a path is on, which the kernel gives to no other mount until it boots
// again. It gives the ID in the mount table to the next mount. It is 0 if the kernel has no unique IDs (before Linux
// 6.8), and for a path that it does not find.
func uniqueMount(path string) uint64 {
	var x unix.Statx_t
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT
	if unix.Statx(unix.AT_FDCWD, path, flags, unix.STATX_MNT_ID_UNIQUE, &x) != nil ||
		x.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		return 0
	}
	return x.Mnt_id
}

// remember notes that a mount has propagation. Without a unique ID the mount is looked up each time.
func (p *Propagation) remember(unique uint64) {
	if unique == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shared == nil {
		p.shared = map[uint64]bool{}
	}
	p.shared[unique] = true
}

func (p *Propagation) knows(unique uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shared[unique]
}

// sharedMount reports whether a mount has peers that receive the mounts made on it (mount_namespaces(7): "shared"). A
// mount that is only a slave ("master") receives mounts and passes none on.
func sharedMount(m *mountinfo.Info) bool {
	for field := range strings.FieldsSeq(m.Optional) {
		if strings.HasPrefix(field, "shared:") {
			return true
		}
	}
	return false
}

// OnHost reports whether this process is in the host's own mount namespace, where its mounts are visible to all. That
// is the namespace of process 1 of the initial PID namespace, whose number is fixed (linux/proc_ns.h).
func OnHost() bool {
	const first = "pid:[4026531836]"
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || pids != first {
		return false
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	hosts, look := os.Readlink("/proc/1/ns/mnt")
	return errors.Join(err, look) == nil && own == hosts
}
