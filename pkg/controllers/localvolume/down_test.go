package localvolume

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// TestNodeThatIsDown checks that nothing is created on a node that is down, that a volume that it has not begun is
// created elsewhere, and that calls for its volumes fail at once with the reason.
func TestNodeThatIsDown(t *testing.T) {
	inCalm(t, func(c *calm) {
		m := c.masters[0]
		if _, err := c.create(m, wanted("volume", "node-0")); err == nil {
			t.Fatal("no worker runs, and a volume is made")
		}
		c.setReady("node-0", corev1.ConditionUnknown)
		c.setReady("node-1", corev1.ConditionFalse)
		c.start("node-2")
		if _, err := c.create(m, wanted("volume", "")); err != nil {
			t.Fatal(err)
		}
		c.start("node-0")
		time.Sleep(10 * time.Second) //nolint:forbidigo // Simulated time, in which it might make it, too.
		if on := c.have("volume"); len(on) != 1 || on[0] != "node-2" {
			t.Errorf("the volume is on %v, want node-2, which alone is up", on)
		}
		c.setReady("node-2", corev1.ConditionUnknown)
		begun := time.Now()
		err := m.Delete(c.ctx, local.Handle("volume"))
		if !backends.Is(err, backends.Unavailable) || !strings.Contains(err.Error(), "node-2") ||
			!strings.Contains(err.Error(), "the kubelet is silent") ||
			time.Since(begun) > time.Second { // Stimulus: in simulated time, which passes only while the call waits.
			t.Errorf("after %s a deletion says %v", time.Since(begun), err)
		}
		if _, err := c.create(m, wanted("another", "")); !backends.Is(err, backends.Exhausted) ||
			!strings.Contains(err.Error(), "node node-1: it is not ready: the kubelet is silent") {
			t.Errorf("no node is up, and a creation says %v", err)
		}
	})
}

// TestWorkerThatDoesNotRun checks that a volume that no worker begins is created on another node.
func TestWorkerThatDoesNotRun(t *testing.T) {
	inCalm(t, func(c *calm) {
		c.start("node-2")
		if made, err := c.create(c.masters[0], wanted("volume", "")); err != nil {
			t.Error(err)
		} else if on := c.have("volume"); len(on) != 1 || made.Topology[0][key] != "node-2" {
			t.Errorf("the volume is on %v", on)
		}
		_, err := c.create(c.masters[0], wanted("another", "node-0"))
		if !backends.Is(err, backends.Exhausted) || !strings.Contains(err.Error(), "its worker has not begun") {
			t.Errorf("its only node has no worker, and a creation says %v", err)
		}
		if left := c.names(&v1alpha1.LocalVolumeList{}, "node-0"); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

// TestSnapshotOnASilentNode checks that a snapshot of a volume whose node does not answer is refused with a final
// error, and that nothing of it is left, so that its VolumeSnapshot can be deleted.
func TestSnapshotOnASilentNode(t *testing.T) {
	for name, silence := range map[string]struct {
		isDown bool
		why    string
	}{
		"no worker runs":   {false, "its worker has not begun"},
		"the node is down": {true, "the kubelet is silent"},
	} {
		t.Run(name, func(t *testing.T) {
			inCalm(t, func(c *calm) {
				v := c.silenced()
				if silence.isDown {
					c.setReady("node-0", corev1.ConditionUnknown)
				}
				err := c.within(time.Minute, func(ctx context.Context) error {
					_, err := edge(c.masters[0]).CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: v.Handle})
					return err
				})
				if !backends.Is(err, backends.InUse) || !strings.Contains(err.Error(), silence.why) {
					t.Errorf("a snapshot says %v", err)
				}
				if left := c.names(&v1alpha1.LocalSnapshotList{}, ""); len(left) > 0 {
					t.Errorf("%v are left", left)
				}
			})
		})
	}
}
