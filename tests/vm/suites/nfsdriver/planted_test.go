package nfsdriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// TestStaticVolumeOverPlantedLink uses a PersistentVolume whose path contains a link that a pod has created in its
// volume, to the driver's own directory. The kernel, or the server, follows the link. The driver mounts nothing,
// whether it knows the share or not. Other directories are mounted.
func TestStaticVolumeOverPlantedLink(t *testing.T) {
	s := newSite(t, nfsd.Config{})
	first := inprocess.Start(t, inprocess.Options{Backend: "nfs"})
	v := newLife(t, first.Conn, "volume", direct, s.export.Path)
	s.must(v.upTo(t.Context(), "unpublish"))
	s.must(os.Symlink("../"+share.HomeName, filepath.Join(v.target, "own")))
	s.must(os.Symlink("..", filepath.Join(v.target, "root")))
	s.must(os.MkdirAll(filepath.Join(v.target, "plain", "deep"), 0o755))
	s.must(os.WriteFile(filepath.Join(v.target, "plain", "deep", "file"), []byte("text"), 0o644))
	s.must(v.patiently(t.Context(), "unpublish", "unstage"))
	for name, config := range map[string]string{
		"unknown":      "",
		"the only one": fmt.Sprintf("onlyShares: true\nshares: [{name: one, server: %s, share: %s}]", direct, s.export.Path),
	} {
		driver := inprocess.Start(t, inprocess.Options{Backend: "nfs", Config: config})
		for _, version := range []string{"3", "4.2"} {
			t.Run(name+" by NFS "+version, func(t *testing.T) {
				within := *s
				within.T = t
				for _, at := range [][2]string{{"own", ""}, {"own/volumes", ""}, {"root", ""}, {"root/volume", ""}, {"", "own"}} {
					err := within.staged(driver, version, path.Join("volume", at[0]), at[1])
					if code := status.Code(err); code != codes.Unavailable && code != codes.InvalidArgument {
						t.Errorf("%q: got %v, want a refusal", at, err)
					}
				}
				for _, at := range [][2]string{{"plain", ""}, {"plain/deep", ""}, {"plain", "deep"}, {"", "plain/deep"}} {
					if err := within.staged(driver, version, path.Join("volume", at[0]), at[1]); err != nil {
						t.Errorf("%q: %v", at, err)
					}
				}
			})
		}
		driver.Stop(t)
	}
	s.must(v.patiently(t.Context(), "delete"))
}

// TestStaticVolumeAcrossFilesystems has a server with another filesystem below the share. With NFS 4, the driver
// follows the path across it, but no link on the path, even for mounts of NFS 3. Without NFS 4, the server shows no
// path.
func TestStaticVolumeAcrossFilesystems(t *testing.T) {
	for name, server := range map[string]struct {
		config nfsd.Config
		asked  []string
		want   codes.Code
	}{
		"all versions": {nfsd.Config{}, []string{"3", "4.2"}, codes.OK},
		"NFS 3":        {nfsd.Config{Versions: []string{"3"}}, []string{"3"}, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, server.config)
			disk := s.withDisk()
			s.must(os.MkdirAll(filepath.Join(disk, "data", "deep"), 0o755))
			s.must(os.Symlink("..", filepath.Join(disk, "data", "up")))
			first := inprocess.Start(t, inprocess.Options{Backend: "nfs"})
			v := newLife(t, first.Conn, "volume", direct, s.export.Path)
			s.must(v.upTo(t.Context(), "stage")) // The share now has records.
			first.Stop(t)
			for _, version := range server.asked {
				driver := inprocess.Start(t, inprocess.Options{Backend: "nfs"})
				for _, at := range [][2]string{{"disk", ""}, {"disk/data", ""}, {"disk", "data"}, {"disk/data", "deep"}} {
					err := s.staged(driver, version, at[0], at[1])
					if status.Code(err) != server.want || err != nil && !strings.Contains(err.Error(), "nfsvers 4.1") {
						t.Errorf("%q by NFS %s: got %v, want %s", at, version, err, server.want)
					}
				}
				for _, at := range [][2]string{{"disk/data/up", ""}, {"disk/data", "up"}, {"disk/data/up/data", ""}} {
					if err := s.staged(driver, version, at[0], at[1]); status.Code(err) != codes.Unavailable {
						t.Errorf("%q by NFS %s: got %v, want Unavailable", at, version, err)
					}
				}
				driver.Stop(t)
			}
		})
	}
}

// TestClosedVolumesAreStaged uses directories that only their owner may enter, on a server that squashes root: the node
// can stat them, but not read them.
func TestClosedVolumesAreStaged(t *testing.T) {
	s := newSite(t, nfsd.Config{})
	s.must(s.server.Export(t.Context(), nfsd.Export{Path: s.export.Path, FSID: s.export.FSID,
		Options: []string{"root_squash"}}))
	s.must(os.Chmod(s.export.Path, 0o777))
	driver := inprocess.Start(t, inprocess.Options{Backend: "nfs"})
	defer driver.Stop(t)
	v := newLife(t, driver.Conn, "volume", direct, s.export.Path)
	s.must(v.patiently(t.Context(), "create"))
	for _, dir := range []string{filepath.Join(s.export.Path, "volume"), filepath.Join(s.export.Path, "alice")} {
		s.must(os.MkdirAll(dir, 0o700))
		s.must(errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, userID, groupID)))
	}
	s.must(v.patiently(t.Context(), "stage", "unstage"))
	for _, version := range []string{"3", "4.2"} {
		if err := s.staged(driver, version, "", "alice"); err != nil {
			t.Errorf("a static volume by NFS %s: %v", version, err)
		}
	}
}

// withDisk exports another filesystem below the share, and returns its directory.
func (s *site) withDisk() string {
	s.Helper()
	disk := nfsd.Export{Path: filepath.Join(s.export.Path, "disk"), Options: s.export.Options, FSID: "78"}
	s.must(os.Mkdir(disk.Path, 0o755))
	s.must(unix.Mount("tmpfs", disk.Path, "tmpfs", 0, "size=1m"))
	s.Cleanup(func() { s.check(unix.Unmount(disk.Path, unix.MNT_DETACH)) })
	s.must(s.server.Export(s.Context(), disk))
	s.Cleanup(func() { s.check(s.server.Unexport(context.Background(), disk)) })
	return disk.Path
}

// staged stages a static volume and unstages it again, and checks that a failed staging left no mount.
func (s *site) staged(driver *inprocess.Driver, version, below, subDir string) error {
	s.Helper()
	l := newLife(s.T, driver.Conn, "static", direct, s.export.Path)
	l.id = "by-hand"
	l.attributes = map[string]string{"server": direct, "share": path.Join(s.export.Path, below), "nfsvers": version}
	if subDir != "" {
		l.attributes["subDir"] = subDir
	}
	failed := l.do(s.Context(), "stage")
	mounted, err := mountinfo.Mounted(l.staging)
	s.must(err)
	if mounted != (failed == nil) {
		s.Errorf("it is mounted: %t, and staging it: %v", mounted, failed)
	}
	_, err = l.node.NodeUnstageVolume(s.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: l.id,
		StagingTargetPath: l.staging})
	return errors.Join(failed, err)
}
