package nfsdriver

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

const (
	anonymous      = 65534 // Debian's default for squashed users
	userID         = 1000
	groupID        = 4321 // of the user, and in one row of the anonymous user
	kubeletGroup   = 5000 // an fsGroup that the kubelet applies
	delegatedGroup = 5001 // an fsGroup that the driver applies
)

// rights is a row of the table in docs/guides/nfs.md.
type rights struct {
	export      string // options of exports(5)
	permissions string // mountPermissions
	owner       uint32
	group       uint32
	read, write bool // what other users may do
	member      bool // members of groupID may write, without an fsGroup
	fsGroup     bool // the volume can be given to a group
}

func rightsTable() []rights {
	const mapped = "root_squash,anongid=4321"
	return []rights{
		{export: "no_root_squash", permissions: "0755", read: true, fsGroup: true},
		{export: "no_root_squash", permissions: "0777", read: true, write: true, member: true, fsGroup: true},
		{export: "no_root_squash", permissions: "2770", fsGroup: true},
		{export: "root_squash", permissions: "0755", owner: anonymous, group: anonymous, read: true},
		{export: "root_squash", permissions: "0777", owner: anonymous, group: anonymous, read: true, write: true,
			member: true},
		{export: mapped, permissions: "2770", owner: anonymous, group: groupID, member: true},
		{export: "all_squash", permissions: "0755", owner: anonymous, group: anonymous, read: true, write: true,
			member: true},
	}
}

// TestWhoMayWrite compares the guide's table with the kernel's behaviour.
func TestWhoMayWrite(t *testing.T) {
	s := newSite(t, nfsd.Config{})
	for _, r := range rightsTable() {
		t.Run(r.export+" "+r.permissions, func(t *testing.T) {
			within := *s
			within.T = t
			within.holds(r)
		})
	}
}

func (s *site) holds(r rights) {
	s.must(exported(func(e *nfsd.Export) { e.Options = strings.Split(r.export, ",") })(s.Context(), s))
	share, err := os.MkdirTemp(s.export.Path, "rights-")
	s.must(err)
	s.must(os.Chmod(share, 0o777)) // the user to which the server maps root must be able to create files
	driver := inprocess.Start(s, inprocess.Options{Backend: "nfs", DelegateFSGroup: true})
	v := newLife(s.T, driver.Conn, "volume", direct, share)
	v.params["mountPermissions"] = r.permissions
	s.must(v.upTo(s.Context(), "stats"))
	s.belongs(share, r.owner, r.group)
	dir, err := os.Open(v.target)
	s.must(err)
	s.can("root writes", true, as(0, 0, nil, writing(dir, "by-root")))
	s.can("another user reads", r.read, as(userID, userID, nil, reading(dir)))
	s.can("another user writes", r.write, as(userID, userID, nil, writing(dir, "by-another")))
	s.can("a member of the group writes", r.member, as(userID, userID, []uint32{groupID}, writing(dir, "by-a-member")))
	s.can("the kubelet gives it to the group", r.fsGroup, giving(v.target))
	if r.fsGroup {
		s.can("a member of its new group writes", true, as(userID, userID, []uint32{kubeletGroup},
			writing(dir, "by-a-new-member")))
	}
	s.must(dir.Close())
	s.must(v.patiently(s.Context(), "unpublish", "unstage"))
	s.must(done(s.Context(), func(ctx context.Context) error { return stageForGroup(ctx, v) }))
	if r.fsGroup {
		s.belongs(share, r.owner, delegatedGroup)
	} else {
		s.belongs(share, r.owner, r.group)
	}
	s.must(v.patiently(s.Context(), "unstage", "delete"))
}

// can compares a user's result with the table.
func (s *site) can(what string, want bool, err error) {
	s.Helper()
	if have := err == nil; have != want {
		s.Errorf("%s: %t (%v), want %t", what, have, err, want)
	}
}

// as runs a function as a user, on a thread that ends with it: for the kernel each thread has its own identity, while
// Go would change that of all threads.
func as(uid, gid uintptr, groups []uint32, work func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		list := append(groups, uint32(gid))
		for _, call := range [][4]uintptr{
			{unix.SYS_SETGROUPS, uintptr(len(list)), uintptr(unsafe.Pointer(&list[0]))}, {unix.SYS_SETRESGID, gid, gid, gid},
			{unix.SYS_SETRESUID, uid, uid, uid},
		} {
			if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				done <- errno
				return
			}
		}
		done <- work()
	}()
	return <-done
}

func writing(dir *os.File, name string) func() error {
	return func() error {
		fd, err := unix.Openat(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o640)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
}

func reading(dir *os.File) func() error {
	return func() error {
		fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
}

// giving gives a volume to a group as the kubelet does (pkg/volume/volume_linux.go of Kubernetes).
func giving(path string) error {
	if err := os.Lchown(path, -1, kubeletGroup); err != nil {
		return err
	}
	return os.Chmod(path, 0o770|os.ModeSetgid)
}

// stageForGroup makes the driver give the volume to the group. Like the kubelet, the driver skips what it may not
// change.
func stageForGroup(ctx context.Context, v *life) error {
	asked := capability()
	asked.GetMount().VolumeMountGroup = strconv.Itoa(delegatedGroup)
	_, err := v.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: v.id, VolumeContext: v.attributes, StagingTargetPath: v.staging, VolumeCapability: asked,
	})
	return err
}

// belongs checks the owner and group of the volume's directory on the server.
func (s *site) belongs(share string, owner, group uint32) {
	s.Helper()
	var found unix.Stat_t
	s.must(unix.Stat(filepath.Join(share, "volume"), &found))
	if found.Uid != owner || found.Gid != group {
		s.Errorf("the directory belongs to %d:%d, want %d:%d", found.Uid, found.Gid, owner, group)
	}
}
