package e2e

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// TestFull gives most of its own pool to a claim. A pod that needs more than the rest waits with an event that says so,
// and runs once there is room. The pool has a capacity (3Gi, in deployed/local), so that provisioned sizes fill it
// regardless of the disk's free space. Nothing is written to that claim's device, which is sparse.
func TestFull(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	const most = "2Gi"
	pool := map[string]string{"pool": "full"}
	class := s.Class("fill", pool, corev1.PersistentVolumeReclaimDelete)
	first := storagev1.VolumeBindingWaitForFirstConsumer
	waiting := s.MakeClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "waits"},
		Provisioner: deployed.Driver, Parameters: pool, VolumeBindingMode: &first})
	s.MakeClaim(workload.Claim("filler", class, most, workload.Block))
	s.Bound("filler")
	s.MakeClaim(workload.Claim("at-once", class, most, workload.Block))
	readable(t, s.Event(workload.Claims(), "at-once", "ProvisioningFailed",
		`pool "full" has no room for 2147483648 bytes: 1073741824 are available`))
	s.DeleteClaim("at-once")
	s.Must(workload.Eventually(s.Context(), "the news that the pool has 1Gi left", func() error {
		return published(s, waiting, "1Gi")
	}))
	s.MakeClaim(workload.Claim("data", waiting, most))
	s.MakePod(workload.Pod("waits", writes+checks, workload.At("data")))
	readable(t, s.Event(workload.Pods(), "waits", "FailedScheduling", "did not have enough free storage"))
	s.DeleteClaim("filler")
	s.Succeeded("waits")
}

// published compares the capacity that is published to the scheduler for a class with the expected one.
func published(s *workload.Space, class, want string) error {
	all, err := s.Client.StorageV1().CSIStorageCapacities(metav1.NamespaceAll).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	err = errors.New("nothing is published")
	for _, c := range all.Items {
		if c.StorageClassName != class || c.Capacity == nil {
			continue
		}
		if c.Capacity.Cmp(resource.MustParse(want)) == 0 {
			return nil
		}
		err = errors.New("published are " + c.Capacity.String())
	}
	return err
}
