package workload

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// Claim describes a claim of a class. The functions change its defaults.
func Claim(name, class, size string, changes ...func(*corev1.PersistentVolumeClaimSpec)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	}
	for _, change := range changes {
		change(&claim.Spec)
	}
	return claim
}

// Block asks for a raw block device.
func Block(spec *corev1.PersistentVolumeClaimSpec) {
	mode := corev1.PersistentVolumeBlock
	spec.VolumeMode = &mode
}

// Mode asks for an access mode.
func Mode(mode corev1.PersistentVolumeAccessMode) func(*corev1.PersistentVolumeClaimSpec) {
	return func(spec *corev1.PersistentVolumeClaimSpec) {
		spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
	}
}

// Named asks for the PersistentVolume of that name, and no other. A claim that must have a volume that became Available
// just now names it: Kubernetes' controller may not have noted the phase yet, although it wrote that itself, and then
// the driver creates another volume.
func Named(volume string) func(*corev1.PersistentVolumeClaimSpec) {
	return func(spec *corev1.PersistentVolumeClaimSpec) { spec.VolumeName = volume }
}

// FromSnapshot asks for the contents of a snapshot.
func FromSnapshot(name string) func(*corev1.PersistentVolumeClaimSpec) {
	snapshots := "snapshot.storage.k8s.io"
	return func(spec *corev1.PersistentVolumeClaimSpec) {
		spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &snapshots, Kind: Snapshots().Name, Name: name}
	}
}

// FromClaim asks for the contents of another claim.
func FromClaim(name string) func(*corev1.PersistentVolumeClaimSpec) {
	return func(spec *corev1.PersistentVolumeClaimSpec) {
		spec.DataSource = &corev1.TypedLocalObjectReference{Kind: Claims().Name, Name: name}
	}
}

// MakeClaim creates a claim.
func (s *Space) MakeClaim(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	s.T.Helper()
	made, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Create(s.Context(), claim, metav1.CreateOptions{})
	s.Must(err)
	return made
}

// ChangeClaim applies a JSON merge patch to the claim.
func (s *Space) ChangeClaim(name, patch string) {
	s.T.Helper()
	s.change(Claims(), name, patch)
}

// Bound waits until a claim is bound, and returns its volume.
func (s *Space) Bound(claim string) *corev1.PersistentVolume {
	s.T.Helper()
	bound := Until(s, Claims(), claim, "is bound",
		func(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound })
	volume, err := s.Client.CoreV1().PersistentVolumes().Get(s.Context(), bound.Spec.VolumeName, metav1.GetOptions{})
	s.Must(err)
	s.handles = append(s.handles, volume.Spec.CSI.VolumeHandle)
	return volume
}

// DeleteClaim deletes a claim and waits until it is gone.
func (s *Space) DeleteClaim(name string) {
	s.T.Helper()
	s.Must(s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.Context(), name, metav1.DeleteOptions{}))
	s.UntilGone(Claims(), name)
}

// Volumes returns the PersistentVolumes of the test's claims.
func (s *Space) Volumes() []corev1.PersistentVolume {
	s.T.Helper()
	volumes, err := s.volumes(s.Context())
	s.Must(err)
	return volumes
}

// ChangeVolume applies a JSON merge patch to a PersistentVolume.
func (s *Space) ChangeVolume(name, patch string) {
	s.T.Helper()
	s.change(Volumes(), name, patch)
}

// EachClaim calls done with each state of each claim of the test until done returns true or the limit is reached.
func (s *Space) EachClaim(limit time.Duration, done func(*corev1.PersistentVolumeClaim) bool) error {
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	never := func() bool { return false }
	return s.await(ctx, Claims(), s.Namespace, fields.Everything(), never,
		func(object *unstructured.Unstructured, _ bool) (bool, error) {
			var claim corev1.PersistentVolumeClaim
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &claim)
			return done(&claim), err
		})
}
