package node_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// flagsAt returns the flags of the mount at a path (statfs(2)).
func (w *world) flagsAt(path string) int64 {
	w.Helper()
	var fs unix.Statfs_t
	w.must(unix.Statfs(path, &fs))
	return fs.Flags
}

// Options of the mount itself are honoured for every form of volume, when it is staged and when it is published. A
// request for options that an existing mount lacks is refused.
func TestMountAttributes(t *testing.T) {
	const all = unix.ST_NOSUID | unix.ST_NODEV | unix.ST_NOEXEC | unix.ST_NOATIME
	options := []string{"nosuid", "nodev", "noexec", "exec", "noexec", "noatime", "_netdev"}
	for _, form := range forms() {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			form.make(w, "v")
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.FSType = form.fsType
			for _, at := range []string{"staged", "published"} {
				staging.MountOptions, publishing.MountOptions = nil, options
				if at == "staged" {
					staging.MountOptions, publishing.MountOptions = options, nil
				}
				for range 2 {
					w.stage(staging)
					w.publish(publishing)
					w.restart()
				}
				if got := w.flagsAt(publishing.TargetPath) & all; got != all {
					t.Errorf("%s with %v, the target has flags %x, want %x", at, options, got, all)
				}
				other := publishing
				other.MountOptions = []string{"nosymfollow"}
				w.want(w.service.Publish(w.context(), other), backends.Exists, `"nosymfollow"`, publishing.TargetPath)
				other.MountOptions = []string{"exec"}
				w.want(w.service.Publish(w.context(), other), backends.Exists, `"exec"`)
				again := staging
				again.MountOptions = []string{"nodiratime"}
				w.want(w.service.Stage(w.context(), again), backends.Exists, `"nodiratime"`, staging.StagingPath)
				w.unpublish(publishing)
				w.unstage(staging)
			}
			w.wantNothingLeft()
		})
	}
}

// Options that only a filesystem can have are refused for a directory, also when it is published.
func TestFilesystemOptionsOfADirectory(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	for _, option := range []string{"discard", "sync", "data=ordered",
		`context="system_u:object_r:container_file_t:s0:c1,c2"`} {
		staging.MountOptions = []string{"noexec", option}
		w.want(w.service.Stage(w.context(), staging), backends.Invalid, "is a directory",
			strings.TrimPrefix(option, "context="))
		staging.MountOptions = nil
		w.stage(staging)
		publishing.MountOptions = []string{option, "noexec"}
		w.want(w.service.Publish(w.context(), publishing), backends.Invalid, "is a directory")
		w.unstage(staging)
	}
	w.wantNothingLeft()
}

// If the kernel has no SELinux, a label is refused with that reason, and nothing is left. With SELinux a volume cannot
// have two labels.
func TestSELinuxLabels(t *testing.T) {
	w := newWorld(t)
	w.image("v", 16)
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	label := `context="system_u:object_r:container_file_t:s0:c1,c2"`
	if !w.hasSELinux() {
		staging.MountOptions = []string{label}
		w.want(w.service.Stage(w.context(), staging), backends.Invalid, "context=", "SELinux is not enabled", "seLinuxMount")
		w.wantNothingLeft()
		staging.MountOptions = nil
	}
	w.stage(staging)
	other := staging
	other.MountOptions = []string{label}
	w.want(w.service.Stage(w.context(), other), backends.Exists, "is staged already", "c1,c2")
	publishing.MountOptions = []string{label}
	w.want(w.service.Publish(w.context(), publishing), backends.InUse, "SELinux labels", "c1,c2")
	publishing.MountOptions = nil
	w.publish(publishing)
	w.unpublish(publishing)
	w.unstage(staging)
	w.wantNothingLeft()
}

func (w *world) hasSELinux() bool {
	w.Helper()
	err := unix.Access("/sys/fs/selinux", unix.F_OK)
	return err == nil
}

// The order of labels, and quotes around them, mean nothing.
func TestSecurityLabelsAreCompared(t *testing.T) {
	one := mount.SecurityLabels([]string{"noexec", `fscontext="a:b"`, `context="c:d:s0:c1,c2"`})
	other := mount.SecurityLabels([]string{"context=c:d:s0:c1,c2", "fscontext=a:b", "ro"})
	if one != other || one != "context=c:d:s0:c1,c2 fscontext=a:b" {
		t.Errorf("%q and %q, want the same", one, other)
	}
}
