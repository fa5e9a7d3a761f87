package nfsdriver

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// shownOptions returns mount options of a class, and the text that the kernel shows for them in mountinfo. A text that
// begins with "!" must not appear.
func shownOptions() map[string]string {
	return map[string]string{
		"hard": "hard", "soft": "soft", "softerr": "softerr", "softreval": "softreval",
		"timeo=70": "timeo=70", "retrans=5": "retrans=5", "rsize=4096": "rsize=4096", "wsize=8192": "wsize=8192",
		"bsize=4096": "bsize=4096",
		"nconnect=3": "nconnect=3", "max_connect=4": "max_connect=4",
		"ac": "!noac", "noac": "noac", "acregmin=5": "acregmin=5", "acregmax=61": "acregmax=61", "acdirmin=31": "acdirmin=31",
		"acdirmax=62": "acdirmax=62",
		"actimeo=7":   "acregmin=7,acregmax=7,acdirmin=7,acdirmax=7", "lookupcache=none": "lookupcache=none", "cto": "!nocto",
		"nocto":      "nocto",
		"sharecache": "!nosharecache", "nosharecache": "nosharecache", "resvport": "!noresvport", "noresvport": "noresvport",
		"local_lock=none": "local_lock=none", "sec=sys": "sec=sys", "proto=tcp": "proto=tcp", "nomigration": "!migration",
		"ro": "ro", "nosuid": "nosuid", "nodev": "nodev", "noexec": "noexec", "noatime": "noatime", "sync": "sync",
	}
}

// TestClassOptionsReachTheMount stages a volume with each option that a class may have, after another volume of the
// same share was staged without it. The kernel must show that the option is in force. Options that the kernel fixes
// with the first mount of a server are tested on a node without such a mount. A controller there has one whenever it
// works, for example on an earlier case's deleted volumes.
func TestClassOptionsReachTheMount(t *testing.T) {
	s := newSite(t, nfsd.Config{})
	for _, option := range slices.Sorted(maps.Keys(shownOptions())) {
		t.Run(option, func(t *testing.T) {
			within := *s
			within.T = t
			within.shows(option, shownOptions()[option])
		})
	}
}

func (s *site) shows(option, want string) {
	driver := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	v := newLife(s.T, driver.Conn, "options", direct, s.export.Path)
	s.must(v.patiently(s.Context(), "create")) // The controller's own mount of the share exists from now on.
	other := newLife(s.T, driver.Conn, "without", direct, s.export.Path)
	// The kernel fixes these with the first mount of a server.
	perConnection := strings.Contains(option, "connect=")
	if s.must(other.patiently(s.Context(), "create")); !perConnection {
		s.must(other.patiently(s.Context(), "stage"))
	} else {
		driver.Stop(s)
		s.nothingIsMounted()
		driver = inprocess.Start(s, inprocess.Options{Backend: "nfs"})
		v.connect(driver.Conn)
		other.connect(driver.Conn)
	}
	asked := capability()
	asked.GetMount().MountFlags = []string{option}
	err := done(s.Context(), func(ctx context.Context) error {
		_, err := v.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: v.id, VolumeContext: v.attributes, StagingTargetPath: v.staging, VolumeCapability: asked,
		})
		return err
	})
	if err != nil {
		s.Fatalf("%s", status.Convert(err).Message())
	}
	infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(v.staging))
	s.must(err)
	if len(infos) != 1 {
		s.Fatalf("%d mounts are at the staging path", len(infos))
	}
	shown := strings.Split(infos[0].Options+","+infos[0].VFSOptions, ",")
	for one := range strings.SplitSeq(want, ",") {
		name, absent := strings.CutPrefix(one, "!")
		if slices.Contains(shown, name) == absent {
			s.Errorf("with %s the kernel shows %v, want %s", option, shown, one)
		}
	}
	s.must(v.patiently(s.Context(), "unstage", "delete"))
	if !perConnection {
		s.must(other.patiently(s.Context(), "unstage"))
	}
	s.must(other.patiently(s.Context(), "delete"))
	driver.Stop(s)
}
