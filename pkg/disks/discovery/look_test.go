package discovery

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/loops"
	"github.com/stowage-csi/stowage/pkg/node/holders"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestIsBlind checks which searches for users prove nothing.
func TestIsBlind(t *testing.T) {
	going := t.Context()
	over, cancel := context.WithCancel(going)
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		partial bool
		pid     int
		want    bool
	}{
		"all was seen":                        {going, false, 7, false},
		"all was seen, in time":               {over, false, 7, false},
		"it was cut short":                    {over, true, 7, true},
		"of a container's own processes":      {going, true, 1, true},
		"of a node that is a container":       {going, true, 7, false},
		"by the machine's first, of them all": {going, false, 1, false},
	} {
		if got := isBlind(c.ctx, holders.Found{Partial: c.partial}, c.pid); got != c.want {
			t.Errorf("%s: it is blind: %t, want %t", name, got, c.want)
		}
	}
}

// TestLoopOfADisk asks which block device a loop device holds, when there is no time left to ask.
func TestLoopOfADisk(t *testing.T) {
	image := filepath.Join(t.TempDir(), "disk.img")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 1<<20)); err != nil {
		t.Fatal(err)
	}
	node := testfs.Attach(t, image)
	var stat unix.Stat_t
	if err := unix.Stat(node, &stat); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := heldBy(ctx, loops.Device{Path: "/dev/loop-above", File: node}); got != stat.Rdev {
		t.Errorf("it holds %d, want %d", got, stat.Rdev)
	}
}
