package driver

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// failing is a backend whose volumes cannot be deleted, for an unknown reason, and cannot be found. One is broken.
type failing struct{ backends.Backend }

func (failing) Delete(_ context.Context, handle string) error {
	if handle == "broken" {
		panic("out of cheese")
	}
	return backends.Errorf(backends.Unknown, "the storage is confused")
}

func (failing) Get(context.Context, string) (*backends.Volume, error) {
	return nil, backends.Errorf(backends.NotFound, "there is no such volume")
}

func (failing) Modify(context.Context, string, any) error {
	return backends.Errorf(backends.InUse, "the volume is in use")
}

// flooded makes a server log the calls. Time passes only when a call waits.
func flooded(t *testing.T, calls func(t *testing.T, client csi.ControllerClient, said func(parts ...string) int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		config := controllerOf(failing{})
		config.Definition.NewMutable = func() any { return &testMutable{} }
		config.Log = slog.New(slog.NewTextHandler(&text, nil))
		client, end := inMemory(t, config)
		defer end()
		calls(t, client, func(parts ...string) int {
			synctest.Wait()
			count := 0
			for line := range strings.Lines(text.String()) {
				fits := true
				for _, part := range parts {
					fits = fits && strings.Contains(line, part)
				}
				if fits {
					count++
				}
			}
			return count
		})
	})
}

// TestFailuresAreLoggedWithinBounds: a caller that retries without a pause does not fill the disk with the log of
// failures, and hides no failure of another kind.
func TestFailuresAreLoggedWithinBounds(t *testing.T) {
	const flood = 1000
	for what, row := range map[string]struct{ volume, message string }{
		"a failure": {"confused", "msg=failed"}, "a panic": {"broken", `msg="a request panicked"`},
	} {
		t.Run(what, func(t *testing.T) {
			flooded(t, func(t *testing.T, client csi.ControllerClient, said func(parts ...string) int) {
				remove := func() {
					if _, err := client.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: row.volume}); err == nil {
						t.Error("a failure was answered OK")
					}
				}
				for range flood {
					remove()
				}
				if got := said(row.message, "DeleteVolume"); got != failureBurst {
					t.Errorf("%d of %d failures are logged, want %d", got, flood, failureBurst)
				}
				_, _ = client.ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{VolumeId: "v",
					MutableParameters: map[string]string{"iops": "1"}}) // It fails, too.
				if got := said("msg=failed", "ControllerModifyVolume", "in use"); got != 1 {
					t.Errorf("another failure beside the flood is logged %d times, want 1", got)
				}
				<-time.After(failuresEvery)
				remove()
				if got := said(row.message, "failures_not_logged=900"); got != 1 {
					t.Errorf("%d lines say how many failures were left out, want 1", got)
				}
			})
		})
	}
}

// TestTheServersRefusalsAreLoggedWithinBounds: the same for refusals, through the server.
func TestTheServersRefusalsAreLoggedWithinBounds(t *testing.T) {
	flooded(t, func(t *testing.T, client csi.ControllerClient, said func(parts ...string) int) {
		for range 2 * refusalBurst {
			_, _ = client.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: "v"}) // It is refused.
		}
		if got := said("msg=refused"); got != refusalBurst {
			t.Errorf("%d of %d refusals are logged, want %d", got, 2*refusalBurst, refusalBurst)
		}
	})
}
