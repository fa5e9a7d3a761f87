package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// TestProtocol checks that each driver, together with its sidecars and Kubernetes' controllers, keeps the promises that
// administrators and users have about claims and volumes. The drivers run side by side in one cluster. Checks that need
// a pod are for local only: this machine has no kernel with NFS and is no EC2 instance, so that volumes of nfs and ebs
// are never attached, staged or published.
func TestProtocol(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) *storage{"local": startLocal, "nfs": startNFS,
		"ebs": startEBS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			b.driver = name + deployed.Drivers
			for name, check := range map[string]func(s *workload.Space, b *storage){
				"late class": lateClass, "odd size": oddSize, "class gone": classGone, "retain": retain,
				"overtaken": overtaken, "deletion refused": deletionRefused,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					check(cluster(t).NewSpace(t), b)
				})
			}
			if b.dangling != nil {
				t.Run("dangling attachment", func(t *testing.T) {
					t.Parallel()
					b.dangling(cluster(t).NewSpace(t), b)
				})
			}
			for name, r := range b.refused {
				t.Run("refused "+name, func(t *testing.T) {
					t.Parallel()
					refused(cluster(t).NewSpace(t), b, r)
				})
			}
		})
	}
}

// storage is a driver with its storage, which the test can inspect directly.
type storage struct {
	driver     string
	parameters func(s *workload.Space) map[string]string // of a class for the test
	topology   []corev1.TopologySelectorTerm             // of all classes
	grain      int64                                     // sizes are multiples of this
	runs       bool                                      // pods can use volumes
	refused    map[string]refusal
	// there reports whether the storage has the volume.
	there func(s *workload.Space, volume *corev1.PersistentVolume) (bool, error)
	// slow delays the creation of the test's next volume until it is released.
	slow func(s *workload.Space) (release func())
	// keep makes the storage refuse the volume's deletion until letGo is called, and returns parts of the error message.
	keep func(s *workload.Space, volume *corev1.PersistentVolume) (says []string, letGo func())
	// dangling creates an attachment that Kubernetes does not know, and checks that it is removed. It is nil for volumes
	// that are not attached.
	dangling func(s *workload.Space, b *storage)
}

// refusal is a claim that the driver refuses, and parts of the message in its event.
type refusal struct {
	parameters map[string]string
	change     func(*corev1.PersistentVolumeClaimSpec)
	says       []string
}

// class creates a class of the driver.
func (b *storage) class(s *workload.Space, parameters map[string]string,
	policy corev1.PersistentVolumeReclaimPolicy) string {
	s.T.Helper()
	return s.MakeClass(&storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provisioner: b.driver, Parameters: parameters,
		ReclaimPolicy: &policy, AllowedTopologies: b.topology,
	})
}

// deleting creates a class of the driver whose volumes are deleted with their claims.
func (b *storage) deleting(s *workload.Space) string {
	s.T.Helper()
	return b.class(s, b.parameters(s), corev1.PersistentVolumeReclaimDelete)
}

// gone waits until neither Kubernetes nor the storage has the volume. A deletion is answered once the volume cannot be
// found any more; its data may still be removed in the background.
func (b *storage) gone(s *workload.Space, volume *corev1.PersistentVolume) {
	s.T.Helper()
	s.UntilGone(workload.Volumes(), volume.Name)
	s.Must(workload.Eventually(s.Context(), "the end of the volume's data", func() error {
		there, err := b.there(s, volume)
		if there {
			err = errors.Join(err, fmt.Errorf("volume %s is gone from Kubernetes, and its data is at the storage", volume.Name))
		}
		return err
	}))
}

// has checks that the storage has the volume: otherwise a check that never finds anything would pass.
func (b *storage) has(s *workload.Space, volume *corev1.PersistentVolume) {
	s.T.Helper()
	if there, err := b.there(s, volume); !there || err != nil {
		s.T.Errorf("at the storage the volume %s is there: %v, %v", volume.Spec.CSI.VolumeHandle, there, err)
	}
}

// refused creates a claim that the driver refuses. The claim's event explains why, and nothing is provisioned.
func refused(s *workload.Space, b *storage, r refusal) {
	class := b.class(s, r.parameters, corev1.PersistentVolumeReclaimDelete)
	claim := workload.Claim("data", class, "64Mi")
	if r.change != nil {
		r.change(&claim.Spec)
	}
	s.MakeClaim(claim)
	readable(s.T, s.Event(workload.Claims(), "data", "ProvisioningFailed", r.says...))
	if volumes := s.Volumes(); len(volumes) > 0 {
		s.T.Errorf("%d volumes were provisioned", len(volumes))
	}
}

// readable rejects messages that expose the internals of programs.
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

// lateClass creates a claim before its class. The claim waits for the class.
func lateClass(s *workload.Space, b *storage) {
	s.MakeClaim(workload.Claim("data", s.Namespace+"-class", "64Mi"))
	s.Event(workload.Claims(), "data", "ProvisioningFailed", "not found")
	b.deleting(s)
	b.asked(s)
}

// asked checks that the claim's volume is as requested, or larger, and returns it.
func (b *storage) asked(s *workload.Space) *corev1.PersistentVolume {
	s.T.Helper()
	volume := s.Bound("data")
	claim, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Get(s.Context(), "data", metav1.GetOptions{})
	s.Must(err)
	asProposed(s.T, volume, claim)
	if volume.Spec.CSI.Driver != b.driver {
		s.T.Errorf("the volume is of %s, not %s", volume.Spec.CSI.Driver, b.driver)
	}
	return volume
}

// oddSize requests a size that not every storage can provide. The volume is larger, never smaller.
func oddSize(s *workload.Space, b *storage) {
	s.MakeClaim(workload.Claim("data", b.deleting(s), "77777777"))
	if got := b.asked(s).Spec.Capacity.Storage().Value(); got%b.grain != 0 {
		s.T.Errorf("the volume has %d bytes, no multiple of %d", got, b.grain)
	}
}

// classGone deletes the class before the volume. The volume is still deleted.
func classGone(s *workload.Space, b *storage) {
	class := b.deleting(s)
	s.MakeClaim(workload.Claim("data", class, "64Mi"))
	volume := s.Bound("data")
	b.has(s, volume)
	s.Must(s.Client.StorageV1().StorageClasses().Delete(s.Context(), class, metav1.DeleteOptions{}))
	s.DeleteClaim("data")
	b.gone(s, volume)
}

// retain keeps a volume whose claim is deleted until its policy is changed.
func retain(s *workload.Space, b *storage) {
	class := b.class(s, b.parameters(s), corev1.PersistentVolumeReclaimRetain)
	s.MakeClaim(workload.Claim("data", class, "64Mi"))
	volume := s.Bound("data")
	b.run(s, "writer", writes)
	s.DeleteClaim("data")
	workload.Until(s, workload.Volumes(), volume.Name, "is released", func(v *corev1.PersistentVolume) bool {
		return v.Status.Phase == corev1.VolumeReleased
	})
	b.has(s, volume)
	s.ChangeVolume(volume.Name, `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`)
	s.MakeClaim(workload.Claim("data", class, "64Mi", workload.Named(volume.Name)))
	s.Bound("data")
	b.run(s, "reader", checks)
	s.ChangeVolume(volume.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	s.DeleteClaim("data")
	b.gone(s, volume)
}

// run runs a pod with the claim if pods can use volumes.
func (b *storage) run(s *workload.Space, name, script string) {
	s.T.Helper()
	if b.runs {
		s.Run(workload.Pod(name, script, workload.At("data")))
	}
}

// overtaken binds the claim to an administrator's volume while the driver's volume is being created. The driver's
// volume is deleted, and the claim keeps the other.
func overtaken(s *workload.Space, b *storage) {
	class := b.deleting(s)
	release := b.slow(s)
	defer release()
	claim := s.MakeClaim(workload.Claim("data", class, "64Mi"))
	s.Event(workload.Claims(), "data", "Provisioning", "is provisioning volume")
	ours := make(chan *corev1.PersistentVolume, 1)
	go func() {
		made := func(*corev1.PersistentVolume) bool { return true }
		volume, _ := workload.Await(s.Context(), s.Cluster, workload.Volumes(), "", "pvc-"+string(claim.UID), made)
		ours <- volume
	}()
	theirs := administrators(s, claim)
	// Kubernetes would bind it as well, but at an unknown time. By then csi-provisioner may have given up its call, and it
	// does not retry for a bound claim.
	s.ChangeClaim("data", fmt.Sprintf(`{"spec":{"volumeName":%q}}`, theirs))
	isTheirs := func(c *corev1.PersistentVolumeClaim) bool {
		return c.Status.Phase == corev1.ClaimBound && c.Spec.VolumeName == theirs
	}
	if len(ours) > 0 {
		s.T.Fatal("our volume was made before the administrator's: nothing has been overtaken")
	}
	release()
	volume := <-ours
	if volume == nil {
		s.T.Fatal("our volume was never made: nothing has been overtaken")
	}
	b.gone(s, volume)
	workload.Until(s, workload.Claims(), "data", "is bound to the administrator's volume", isTheirs)
}

// administrators creates a volume for the claim by hand. No driver creates or deletes it.
func administrators(s *workload.Space, claim *corev1.PersistentVolumeClaim) string {
	s.T.Helper()
	volumes := s.Client.CoreV1().PersistentVolumes()
	made, err := volumes.Create(s.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-by-hand"},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: *claim.Spec.StorageClassName, AccessModes: claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")},
			ClaimRef:                      &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/mnt"}},
		},
	}, metav1.CreateOptions{})
	s.Must(err)
	s.T.Cleanup(func() { _ = volumes.Delete(context.Background(), made.Name, metav1.DeleteOptions{}) })
	return made.Name
}

// deletionRefused makes the storage refuse a deletion. The volume's event gives the reason. Once the cause is removed,
// the volume is deleted.
func deletionRefused(s *workload.Space, b *storage) {
	s.MakeClaim(workload.Claim("data", b.deleting(s), "64Mi"))
	volume := s.Bound("data")
	says, letGo := b.keep(s, volume)
	defer letGo()
	begun := time.Now()
	s.DeleteClaim("data")
	readable(s.T, s.Event(workload.Volumes(), volume.Name, "VolumeFailedDelete", says...))
	b.has(s, volume)
	letGo()
	b.gone(s, volume)
	s.T.Logf("refused, allowed and deleted within %v", time.Since(begun))
}

// TestOnlyUnbound checks that the driver provisions nothing for a claim that names its volume.
func TestOnlyUnbound(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	class := s.Class("named", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	s.MakeClaim(workload.Claim("named", class, "64Mi", workload.Named("no-such-volume")))
	// A claim that is created later has its volume once the provisioner has seen both.
	s.MakeClaim(workload.Claim("after", class, "64Mi"))
	s.Bound("after")
	if volumes := s.Volumes(); len(volumes) != 1 || volumes[0].Spec.ClaimRef.Name != "after" {
		t.Errorf("there are %d volumes, not the one of the other claim only", len(volumes))
	}
}
