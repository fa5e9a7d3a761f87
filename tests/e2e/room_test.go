package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/tests/e2e/nodeview"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

const gib int64 = 1 << 30

// The room that is left to other tests, which ask for less than half of it together; and what the pod that waits asks
// for.
const (
	spare  = 16 * gib
	wanted = 24 * gib
)

// TestFull promises nearly all that the disk has free to claims: a pod that wants more waits with an event that says
// so, and runs when room is made. The claims are sparse devices that nobody writes to, so that the disk of the machine
// does not fill.
func TestFull(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	class := s.Class("fill", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	fillers := fill(s, class)
	s.MakeClaim(workload.Claim("at-once", class, fmt.Sprint(wanted), workload.Block))
	readable(t, s.Event(workload.Claims(), "at-once", "ProvisioningFailed",
		`pool "image" has no room for 25769803776 bytes: `, " are available"))
	s.DeleteClaim("at-once")
	s.MakeClaim(workload.Claim("data", xfs, fmt.Sprint(wanted)))
	s.MakePod(workload.Pod("waits", writes+checks, workload.At("data")))
	readable(t, s.Event(workload.Pods(), "waits", "FailedScheduling", "did not have enough free storage"))
	for _, name := range fillers {
		s.DeleteClaim(name)
	}
	s.Succeeded("waits")
}

// fill promises all that is free but the spare room, and returns the claims' names.
func fill(s *workload.Space, class string) []string {
	s.T.Helper()
	free, _, err := nodeview.Available(context.Background(), s.Cluster.Cluster, s.Node)
	s.Must(err)
	if free < wanted+spare/2 {
		s.T.Fatalf("the test wants %d GiB free on the disk, and there are %d", (wanted+spare/2)/gib, free/gib)
	}
	var names []string
	for left := free - spare; left >= gib; {
		name, part := fmt.Sprintf("filler-%d", len(names)), min(left, free/2)/gib*gib
		s.MakeClaim(workload.Claim(name, class, fmt.Sprint(part), workload.Block))
		names = append(names, name)
		left -= part
	}
	for _, name := range names {
		s.Bound(name)
	}
	return names
}
