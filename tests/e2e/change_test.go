package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// grown waits until the claim's status reports the size.
func grown(s *workload.Space, claim, size string) {
	s.T.Helper()
	want := resource.MustParse(size)
	workload.Until(s, workload.Claims(), claim, "has "+size, func(c *corev1.PersistentVolumeClaim) bool {
		return c.Status.Capacity.Storage().Cmp(want) >= 0 && len(c.Status.Conditions) == 0
	})
}

func ask(s *workload.Space, claim, size string) {
	s.T.Helper()
	s.ChangeClaim(claim, fmt.Sprintf(`{"spec":{"resources":{"requests":{"storage":%q}}}}`, size))
}

// room prints the size of the filesystem at /data, in KiB.
const room = "df -k /data | awk 'END {print $2}'"

// TestGrowOnline grows an xfs under a pod that writes.
func TestGrowOnline(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	s.MakeClaim(workload.Claim("data", xfs, "400Mi"))
	s.Start(workload.Pod("user",
		writes+"until test $("+room+") -gt 700000; do echo x >> /data/log; sync; sleep 0.1; done; "+
			"md5sum -c /data/sum; dd if=/dev/zero of=/data/more bs=1M count=500 2>/dev/null && echo grown", workload.At("data")))
	ask(s, "data", "900Mi")
	grown(s, "data", "900Mi")
	if out := s.Succeeded("user"); out != "/data/file: OK\ngrown" {
		t.Errorf("the pod says:\n%s", out)
	}
}

// TestGrowDirectory grows a volume of a directory pool, which needs no work on the node.
func TestGrowDirectory(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	s.MakeClaim(workload.Claim("data", directory, "64Mi"))
	s.Run(workload.Pod("writer", writes, workload.At("data")))
	ask(s, "data", "128Mi")
	grown(s, "data", "128Mi")
	s.Run(workload.Pod("reader", checks, workload.At("data")))
}

// TestGrowOffline grows an ext4 that no pod uses. The next pod sees the new size.
func TestGrowOffline(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	s.MakeClaim(workload.Claim("data", ext4, "64Mi"))
	s.Run(workload.Pod("writer", writes, workload.At("data")))
	unstaged(s, s.Bound("data").Spec.CSI.VolumeHandle)
	ask(s, "data", "256Mi")
	s.Event(workload.Claims(), "data", "FileSystemResizeRequired")
	out := s.Run(workload.Pod("reader", checks+"test $("+room+") -gt 200000; echo grown", workload.At("data")))
	if !strings.HasSuffix(out, "grown") {
		t.Errorf("the pod says:\n%s", out)
	}
	grown(s, "data", "256Mi")
}

// TestGrowLowered asks for more than the pool has and expects an event. It then lowers the request, and the volume
// grows.
func TestGrowLowered(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	class := s.Class("image", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	s.MakeClaim(workload.Claim("data", class, "64Mi"))
	s.Bound("data")
	ask(s, "data", "8Ti")
	readable(t, s.Event(workload.Claims(), "data", "VolumeResizeFailed", `pool "image" has no room for`))
	ask(s, "data", "256Mi")
	s.Event(workload.Claims(), "data", "FileSystemResizeRequired")
	s.Run(workload.Pod("user", "test $("+room+") -gt 200000", workload.At("data")))
	grown(s, "data", "256Mi")
}

// unstaged waits until the node has unstaged a volume, which happens some time after the pod is gone. A pod that starts
// earlier uses the volume as it is staged.
func unstaged(s *workload.Space, handle string) {
	s.T.Helper()
	s.Must(workload.Eventually(s.Context(), "the end of the volume's device", func() error {
		view, err := s.Look(s.Context())
		for _, loop := range view.Loops {
			if strings.Contains(loop, handle) {
				err = fmt.Errorf("there is still %s", loop)
			}
		}
		return err
	}))
}

// TestGrowBlock grows a raw device under a pod.
func TestGrowBlock(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	s.MakeClaim(workload.Claim("disk", ext4, "64Mi", workload.Block))
	s.Start(workload.Pod("user",
		"until test $(blockdev --getsize64 /dev/disk) = 134217728; do sleep 0.1; done; echo grown",
		[]workload.Mount{{Claim: "disk", Path: "/dev/disk", Device: true}}))
	ask(s, "disk", "128Mi")
	grown(s, "disk", "128Mi")
	if out := s.Succeeded("user"); out != "grown" {
		t.Errorf("the pod says %q", out)
	}
}

// TestSnapshot takes a snapshot while a pod writes, and restores it to a second, larger volume.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	for _, class := range []string{ext4, xfs} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			s := cluster(t).NewSpace(t)
			s.MakeClaim(workload.Claim("data", class, "400Mi"))
			s.Start(workload.Pod("writer", writes+"echo written; while true; do date >> /data/log; sync; sleep 0.05; done",
				workload.At("data")))
			written(s, "writer")
			s.Snapshot("point", "stowage-local", "data")
			s.Exec("writer", "sh", "-c", "echo changed > /data/file; sync")
			s.MakeClaim(workload.Claim("restored", class, "600Mi", workload.FromSnapshot("point")))
			out := s.Run(workload.Pod("reader", checks+"test $("+room+") -gt 450000; echo larger", workload.At("restored")))
			if out != "/data/file: OK\nlarger" {
				t.Errorf("the pod with the snapshot says:\n%s", out)
			}
			s.DeleteSnapshot("point")
			s.Run(workload.Pod("again", checks, workload.At("restored")))
		})
	}
}

// written waits until a pod reports that its data is on disk.
func written(s *workload.Space, pod string) {
	s.T.Helper()
	s.Must(workload.Eventually(s.Context(), "the data of "+pod, func() error { return says(s, pod, "written") }))
}

// TestClone clones a volume of each class. The clone and its source are then independent.
func TestClone(t *testing.T) {
	t.Parallel()
	for _, class := range []string{ext4, xfs, directory} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			s := cluster(t).NewSpace(t)
			s.MakeClaim(workload.Claim("data", class, "400Mi"))
			s.Run(workload.Pod("writer", writes, workload.At("data")))
			s.MakeClaim(workload.Claim("copy", class, "400Mi", workload.FromClaim("data")))
			s.Run(workload.Pod("reader", checks+"echo changed > /data/file", workload.At("copy")))
			s.DeleteClaim("copy")
			s.Run(workload.Pod("original", checks, workload.At("data")))
		})
	}
}

// TestAttributes changes a volume's attributes with a VolumeAttributesClass: the read-ahead of its device changes with
// the next staging.
func TestAttributes(t *testing.T) {
	t.Parallel()
	modified(cluster(t).NewSpace(t))
}

// readAhead prints the read-ahead of the device at /data, in KiB.
const readAhead = "cat /sys/class/block/$(basename $(grep ' /data ' /proc/mounts | cut -d' ' -f1))/queue/read_ahead_kb"

func modified(s *workload.Space) {
	s.T.Helper()
	s.MakeClaim(workload.Claim("data", ext4, "64Mi"))
	before := s.Run(workload.Pod("before", writes+readAhead, workload.At("data")))
	has(s, "data", "stowage-local-sequential")
	after := s.Run(workload.Pod("after", writes+readAhead, workload.At("data")))
	if before == "4096" || after != "4096" {
		s.T.Errorf("the read-ahead was %s KiB, and is %s", before, after)
	}
}

// has gives a claim a VolumeAttributesClass, and waits until its volume has the attributes.
func has(s *workload.Space, claim, class string) {
	s.T.Helper()
	s.ChangeClaim(claim, `{"spec":{"volumeAttributesClassName":"`+class+`"}}`)
	workload.Until(s, workload.Claims(), claim, "has the attributes", func(c *corev1.PersistentVolumeClaim) bool {
		name := c.Status.CurrentVolumeAttributesClassName
		return name != nil && *name == class && c.Status.ModifyVolumeStatus == nil
	})
}

// TestAttributesRefused uses a VolumeAttributesClass that the driver refuses, and expects an event. The volume then
// takes the attributes of a second class, and of a third.
func TestAttributesRefused(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	refused := s.AttributesClass("refused", map[string]string{"readAheadKiB": "-5"})
	third := s.AttributesClass("third", map[string]string{"readAheadKiB": "128"})
	class := s.Class("image", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	s.MakeClaim(workload.Claim("data", class, "64Mi"))
	s.Bound("data")
	s.ChangeClaim("data", `{"spec":{"volumeAttributesClassName":"`+refused+`"}}`)
	readable(t, s.Event(workload.Claims(), "data", "VolumeModifyFailed", `"readAheadKiB"`, `"-5"`))
	has(s, "data", "stowage-local-sequential")
	has(s, "data", third)
}
