package disks

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestSizeThatChanges wipes no device that has another size than it was found with a moment ago.
func TestSizeThatChanges(t *testing.T) {
	const mib = 1 << 20
	image := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(image, make([]byte, mib), 0o600); err != nil {
		t.Fatal(err)
	}
	v := report.Volume{Name: "disk-1", Device: testfs.Attach(t, image), SizeBytes: 2 * mib, Mode: report.Block}
	err := new(Engine).wipeDevice(context.WithoutCancel(t.Context()), &operation{note: &operationNote{}}, v)
	if err == nil || !strings.Contains(err.Error(), "goes or grows") {
		t.Errorf("a device that was twice as large is wiped with %v", err)
	}
}
