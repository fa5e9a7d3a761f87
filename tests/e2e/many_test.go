package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// TestFifty creates 50 claims at once, of ext4 and directory classes in turn, each with a pod that writes and reads.
func TestFifty(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	begun := time.Now()
	names := pairs(s, 50, writes+checks)
	for _, name := range names {
		s.Succeeded(name)
	}
	t.Logf("50 claims and their pods: %v", time.Since(begun))
}

// pairs creates count claims, each with a pod of the same name that runs the script.
func pairs(s *workload.Space, count int, script string) []string {
	s.T.Helper()
	classes := []string{ext4, directory}
	var names []string
	for i := range count {
		name := fmt.Sprintf("pair-%d", i)
		s.MakeClaim(workload.Claim(name, classes[i%len(classes)], "32Mi"))
		s.MakePod(workload.Pod(name, script, workload.At(name)))
		names = append(names, name)
	}
	return names
}
