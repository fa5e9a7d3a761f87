package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// TestRefused asks for what cannot be: the claim says what is wrong in words, and nothing is provisioned.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]struct {
		parameters map[string]string
		change     func(*corev1.PersistentVolumeClaimSpec)
		says       []string
	}{
		"unknown parameter": {
			parameters: map[string]string{"poool": "image"}, says: []string{`parameter "poool" is not known: did you mean "pool"?`},
		},
		"wrong case": {
			parameters: map[string]string{"ondelete": "retain"}, says: []string{`parameter "ondelete" is not known: did you mean "onDelete"`},
		},
		"unknown value": {
			parameters: map[string]string{"allocation": "thick"}, says: []string{"allocation", "thick", "sparse", "full"},
		},
		"unknown pool": {
			parameters: map[string]string{"pool": "fast"}, says: []string{`there is no pool "fast" on this node: use image or directory`},
		},
		"impossible combination": {
			parameters: map[string]string{"pool": "directory", "allocation": "full"}, says: []string{"allocation", "image"},
		},
		"directory as a device": {
			parameters: map[string]string{"pool": "directory"}, change: workload.Block, says: []string{`access type "block" is not supported: use mount`},
		},
		"selector": {
			change: func(spec *corev1.PersistentVolumeClaimSpec) {
				spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "north"}}
			},
			says: []string{"claim Selector is not supported"},
		},
		"ReadWriteMany": {
			parameters: map[string]string{"pool": "image"}, change: workload.Mode(corev1.ReadWriteMany), says: []string{"MULTI_NODE_MULTI_WRITER is not supported: use SINGLE_NODE_WRITER"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := cluster(t).NewSpace(t)
			class := s.Class("refused", refused.parameters, corev1.PersistentVolumeReclaimDelete)
			claim := workload.Claim("data", class, "64Mi")
			if refused.change != nil {
				refused.change(&claim.Spec)
			}
			s.MakeClaim(claim)
			message := s.Event(workload.Claims(), "data", "ProvisioningFailed", refused.says...)
			readable(t, message)
			if volumes := s.Volumes(); len(volumes) > 0 {
				t.Errorf("%d volumes were provisioned", len(volumes))
			}
		})
	}
}

// readable refuses messages that show the insides of programs.
func readable(t *testing.T, message string) {
	t.Helper()
	for _, inside := range []string{"goroutine", "0x", "%!", "&{", "map["} {
		if strings.Contains(message, inside) {
			t.Errorf("an operator reads %q in: %s", inside, message)
		}
	}
	if strings.Count(message, "rpc error") > 1 {
		t.Errorf("an error is wrapped in another: %s", message)
	}
}

// TestLateClass makes a claim wait for its class, which comes later.
func TestLateClass(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	s.MakeClaim(workload.Claim("data", s.Namespace+"-late", "64Mi"))
	s.Event(workload.Claims(), "data", "ProvisioningFailed", "not found")
	s.Class("late", map[string]string{"pool": "directory"}, corev1.PersistentVolumeReclaimDelete)
	asked(t, s)
}

// asked checks that the volume of the claim is what was asked for, or more.
func asked(t *testing.T, s *workload.Space) {
	t.Helper()
	volume := s.Bound("data")
	claim, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Get(t.Context(), "data", metav1.GetOptions{})
	s.Must(err)
	asProposed(t, volume, claim)
}

// TestOddSize asks for a size that no image can have: the volume is larger, never smaller.
func TestOddSize(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	class := s.Class("odd", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	s.MakeClaim(workload.Claim("data", class, "77777777"))
	asked(t, s)
	if got := s.Bound("data").Spec.Capacity.Storage(); got.Value() == 77777777 {
		t.Errorf("the volume has %d bytes, which no image has", got.Value())
	}
}

// TestClassGone deletes the class before the volume, which is deleted all the same.
func TestClassGone(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	class := s.Class("gone", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	s.MakeClaim(workload.Claim("data", class, "64Mi"))
	volume := s.Bound("data")
	s.Must(s.Client.StorageV1().StorageClasses().Delete(t.Context(), class, metav1.DeleteOptions{}))
	s.DeleteClaim("data")
	s.UntilGone(workload.Volumes(), volume.Name)
}

// TestRetain keeps a volume whose claim is deleted, until somebody changes its policy.
func TestRetain(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	class := s.Class("kept", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimRetain)
	s.MakeClaim(workload.Claim("data", class, "64Mi"))
	volume := s.Bound("data")
	s.Run(workload.Pod("writer", writes, workload.At("data")))
	s.DeleteClaim("data")
	workload.Until(s, workload.Volumes(), volume.Name, "is released", func(v *corev1.PersistentVolume) bool {
		return v.Status.Phase == corev1.VolumeReleased
	})
	view, err := s.Look(context.Background())
	s.Must(err)
	if len(view.Of(volume.Spec.CSI.VolumeHandle)) == 0 {
		t.Error("the files of the volume are gone")
	}
	s.ChangeVolume(volume.Name, `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`)
	s.MakeClaim(workload.Claim("data", class, "64Mi", func(spec *corev1.PersistentVolumeClaimSpec) { spec.VolumeName = volume.Name }))
	s.Run(workload.Pod("reader", checks, workload.At("data")))
	s.ChangeVolume(volume.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	s.DeleteClaim("data")
	s.UntilGone(workload.Volumes(), volume.Name)
}

// TestOnlyUnbound leaves a claim alone that names its volume.
func TestOnlyUnbound(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	class := s.Class("named", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	s.MakeClaim(workload.Claim("named", class, "64Mi", func(spec *corev1.PersistentVolumeClaimSpec) { spec.VolumeName = "no-such-volume" }))
	// One that is made after it has its volume when the provisioner has seen both.
	s.MakeClaim(workload.Claim("after", class, "64Mi"))
	s.Bound("after")
	if volumes := s.Volumes(); len(volumes) != 1 || volumes[0].Spec.ClaimRef.Name != "after" {
		t.Errorf("there are %d volumes, not the one of the other claim only", len(volumes))
	}
}
