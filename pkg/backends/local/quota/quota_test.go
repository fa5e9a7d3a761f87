package quota

import (
	"os"
	"testing"
)

// TestWithoutQuotas checks that a filesystem without quotas bounds nothing and reports that. Calls that need quotas
// fail and name the directory.
func TestWithoutQuotas(t *testing.T) {
	dir, err := os.Open("/dev/shm")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if Enforced(dir) {
		t.Error("a filesystem in memory enforces project quotas")
	}
	if _, err := Take(dir); err == nil {
		t.Error("a project was taken where there are none")
	}
	if err := Limit(dir, first, 1<<20); err == nil {
		t.Error("a limit was set where there are none")
	}
}
