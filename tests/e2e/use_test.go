package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// The example classes, deploy/kubernetes/examples/local, and the class of deployed/classes.
const (
	ext4      = "stowage-local"
	xfs       = "stowage-local-xfs"
	directory = "stowage-local-directory"
)

// writes creates a file of 4 MiB with its checksum, and checks verifies it.
const (
	writes = "set -e; dd if=/dev/urandom of=/data/file bs=1M count=4 2>/dev/null; md5sum /data/file > /data/sum; sync; "
	checks = "set -e; md5sum -c /data/sum; "
)

// TestClaimToPod gives a pod a volume of each class. The next pod finds the data.
func TestClaimToPod(t *testing.T) {
	t.Parallel()
	for class, want := range map[string]string{ext4: "ext4", xfs: "xfs", directory: ""} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			s := cluster(t).NewSpace(t)
			claim := s.MakeClaim(workload.Claim("data", class, "400Mi"))
			out := s.Run(workload.Pod("writer", writes+"grep ' /data ' /proc/mounts", workload.At("data")))
			if want != "" && !strings.Contains(out, " /data "+want+" ") {
				t.Errorf("the mount is %q, not of %s", out, want)
			}
			asProposed(t, s.Bound("data"), claim)
			out = s.Run(workload.Pod("reader", checks, workload.At("data")))
			if !strings.Contains(out, "/data/file: OK") {
				t.Errorf("the second pod says %q", out)
			}
		})
	}
}

// asProposed checks a volume against docs/proposals/volume-provisioning.md: "The created PV MUST have these
// properties".
func asProposed(t *testing.T, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID != claim.UID || ref.Name != claim.Name || ref.Namespace != claim.Namespace {
		t.Errorf("claimRef is %+v, not of the claim %s/%s %s", ref, claim.Namespace, claim.Name, claim.UID)
	}
	if by := volume.Annotations["pv.kubernetes.io/provisioned-by"]; by != volume.Spec.CSI.Driver {
		t.Errorf("provisioned-by is %q", by)
	}
	if volume.Spec.StorageClassName != *claim.Spec.StorageClassName {
		t.Errorf("the class is %q, not %q", volume.Spec.StorageClassName, *claim.Spec.StorageClassName)
	}
	if has, asked := volume.Spec.Capacity.Storage(), claim.Spec.Resources.Requests.Storage(); has.Cmp(*asked) < 0 {
		t.Errorf("the volume has %v, less than the %v asked for", has, asked)
	}
	if fmt.Sprint(volume.Spec.AccessModes) != fmt.Sprint(claim.Spec.AccessModes) {
		t.Errorf("the access modes are %v, not %v", volume.Spec.AccessModes, claim.Spec.AccessModes)
	}
	withoutSecrets(t, volume)
}

// withoutSecrets checks that a volume refers to no secret and holds only what its driver needs.
func withoutSecrets(t *testing.T, volume *corev1.PersistentVolume) {
	t.Helper()
	csi := volume.Spec.CSI
	if csi.ControllerExpandSecretRef != nil || csi.ControllerPublishSecretRef != nil || csi.NodeExpandSecretRef != nil ||
		csi.NodePublishSecretRef != nil || csi.NodeStageSecretRef != nil {
		t.Errorf("the volume refers to secrets: %+v", csi)
	}
	for key, value := range volume.Annotations {
		if strings.Contains(key, "secret") && value != "" {
			t.Errorf("the annotation %s is %q", key, value)
		}
	}
	for key := range csi.VolumeAttributes {
		switch key {
		case "storage.kubernetes.io/csiProvisionerIdentity", "stowage.dev/context":
		case "server", "share", "subDir": // Of nfs: the location of the volume, as administrators know it.
		default:
			t.Errorf("the volume carries the attribute %s", key)
		}
	}
}

// TestFSGroup gives a volume to a pod that does not run as root, with an fsGroup.
func TestFSGroup(t *testing.T) {
	t.Parallel()
	for _, class := range []string{ext4, xfs, directory} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			s := cluster(t).NewSpace(t)
			s.MakeClaim(workload.Claim("data", class, "400Mi"))
			user, group, nonRoot := int64(1234), int64(5678), true
			out := s.Run(workload.Pod("user", "id; touch /data/file && stat -c '%u %g %a' /data /data/file", workload.At("data"),
				func(p *corev1.PodSpec) {
					p.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &user, FSGroup: &group, RunAsNonRoot: &nonRoot}
				}))
			if !strings.Contains(out, "0 5678 2775\n1234 5678 ") {
				t.Errorf("the pod says:\n%s", out)
			}
		})
	}
}

// TestSubPath mounts a folder of a volume, and the whole volume read-only, in one pod.
func TestSubPath(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	s.MakeClaim(workload.Claim("data", ext4, "64Mi"))
	pod := workload.Pod("both",
		"set -e; echo here > /sub/file; cat /all/folder/file; ! touch /all/x 2>/tmp/error; cat /tmp/error", nil)
	pod.Spec.Volumes = workload.Pod("", "", workload.At("data")).Spec.Volumes
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "data", MountPath: "/sub", SubPath: "folder"}, {Name: "data", MountPath: "/all", ReadOnly: true},
	}
	if out := s.Run(pod); !strings.Contains(out, "here\n") || !strings.Contains(out, "Read-only file system") {
		t.Errorf("the pod says:\n%s", out)
	}
}

// TestReadOnly mounts a claim read-only, as the pod's volume source asks.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, class := range []string{ext4, xfs, directory} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			s := cluster(t).NewSpace(t)
			s.MakeClaim(workload.Claim("data", class, "400Mi"))
			s.Run(workload.Pod("writer", writes, workload.At("data")))
			out := s.Run(workload.Pod("reader", checks+"! touch /data/new 2>&1", workload.At("data"), func(p *corev1.PodSpec) {
				p.Volumes[0].PersistentVolumeClaim.ReadOnly = true
			}))
			if !strings.Contains(out, "/data/file: OK") || !strings.Contains(out, "Read-only file system") {
				t.Errorf("the pod says:\n%s", out)
			}
		})
	}
}

// TestBlock gives pods a raw device of exactly the volume's size. The written data persists.
func TestBlock(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	claim := s.MakeClaim(workload.Claim("disk", ext4, "64Mi", workload.Block))
	device := []workload.Mount{{Claim: "disk", Path: "/dev/disk", Device: true}}
	out := s.Run(workload.Pod("writer", "set -e; test -b /dev/disk; blockdev --getsize64 /dev/disk; "+
		"echo mark | dd of=/dev/disk bs=1M seek=63 conv=sync,fsync 2>/dev/null; echo written", device))
	if want := "67108864\nwritten"; out != want {
		t.Errorf("the pod says %q, not %q", out, want)
	}
	asProposed(t, s.Bound("disk"), claim)
	out = s.Run(workload.Pod("reader", "dd if=/dev/disk bs=1M skip=63 2>/dev/null | head -c 4", device))
	if out != "mark" {
		t.Errorf("the next pod reads %q", out)
	}
}

// TestEphemeral gives a pod a volume that is deleted with the pod.
func TestEphemeral(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	pod := workload.Pod("scratch", writes+checks+"echo ready; sleep 1000", nil)
	class := xfs
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/data"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch",
		VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("400Mi")},
				},
			}},
		}}}}
	s.Start(pod)
	volume := s.Bound("scratch-scratch")
	s.DeletePod("scratch")
	s.UntilGone(workload.Claims(), "scratch-scratch")
	s.UntilGone(workload.Volumes(), volume.Name)
}

// TestReadWriteOncePod keeps a second pod waiting, with an event that gives the reason, until the first one is gone.
func TestReadWriteOncePod(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	s.MakeClaim(workload.Claim("data", ext4, "64Mi", workload.Mode(corev1.ReadWriteOncePod)))
	s.Start(workload.Pod("first", writes+"echo written; sleep 1000", workload.At("data")))
	written(s, "first")
	s.MakePod(workload.Pod("second", checks, workload.At("data")))
	s.Event(workload.Pods(), "second", "FailedScheduling", "ReadWriteOncePod", "in-use by another pod")
	s.DeletePod("first")
	if out := s.Succeeded("second"); !strings.Contains(out, "/data/file: OK") {
		t.Errorf("the second pod says %q", out)
	}
}

// TestManyPods shares a directory between pods of the node.
func TestManyPods(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	s.MakeClaim(workload.Claim("data", directory, "64Mi"))
	s.MakePod(workload.Pod("waits", "until test -e /data/there; do sleep 0.1; done; cat /data/there", workload.At("data")))
	s.Run(workload.Pod("writes", "echo hello > /data/new && mv /data/new /data/there", workload.At("data")))
	if out := s.Succeeded("waits"); out != "hello" {
		t.Errorf("the other pod reads %q", out)
	}
}
