package nfs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

var (
	lifecycles = flag.Int("lifecycles", 64, "how many volumes live and die for each number in flight")
	volumes    = flag.Int("volumes", 600, "how many volumes are made on one share")
	strict     = flag.Bool("strict", false, "fail when the speed is not what is promised; for a quiet machine")
)

// promised returns the required lifecycles per second, by the number in flight: five and ten times the rate of
// csi-driver-nfs on the machine of the comparison.
func promised() map[int]float64 { return map[int]float64{1: 5 * 38, 32: 10 * 79} }

func capability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	}
}

func (w *world) create(ctx context.Context, name string) (*csi.Volume, error) {
	answer, err := csi.NewControllerClient(w.Conn).CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 20},
		VolumeCapabilities: []*csi.VolumeCapability{capability()}, Parameters: w.params,
	})
	return answer.GetVolume(), err
}

func (w *world) delete(ctx context.Context, id string) error {
	_, err := csi.NewControllerClient(w.Conn).DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	return err
}

// live takes one volume through its life.
func (w *world) live(ctx context.Context, name, dir string) error {
	staging, target := filepath.Join(dir, name, "staging"), filepath.Join(dir, name, "target")
	v, err := w.create(ctx, name)
	if err != nil {
		return err
	}
	node := csi.NewNodeClient(w.Conn)
	for _, step := range []func() error{
		func() error {
			_, err := node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: v.GetVolumeId(),
				VolumeContext: v.GetVolumeContext(), StagingTargetPath: staging, VolumeCapability: capability()})
			return err
		},
		func() error {
			_, err := node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: v.GetVolumeId(),
				VolumeContext: v.GetVolumeContext(), StagingTargetPath: staging, TargetPath: target,
				VolumeCapability: capability()})
			return err
		},
		func() error {
			_, err := node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.GetVolumeId(),
				TargetPath: target})
			return err
		},
		func() error {
			_, err := node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.GetVolumeId(),
				StagingTargetPath: staging})
			return err
		},
		func() error { return w.delete(ctx, v.GetVolumeId()) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func TestLifecycles(t *testing.T) {
	w := newWorld(t)
	for _, inflight := range []int{1, 8, 32} {
		dir := t.TempDir()
		for i := range *lifecycles { // The kubelet creates these directories.
			if err := os.MkdirAll(filepath.Join(dir, fmt.Sprintf("v-%d-%d", inflight, i), "staging"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		w.many(*lifecycles, inflight,
			func(i int) error { return w.live(t.Context(), fmt.Sprintf("v-%d-%d", inflight, i), dir) })
		rate := float64(*lifecycles) / time.Since(begin).Seconds()
		t.Logf("%d in flight: %.0f lifecycles/s", inflight, rate)
		if least := promised()[inflight]; *strict && rate < least {
			t.Errorf("with %d in flight there are %.0f lifecycles/s, want %.0f at least", inflight, rate, least)
		}
	}
}

// many calls do n times, with up to inflight calls at a time.
func (w *world) many(n, inflight int, do func(i int) error) {
	w.Helper()
	var group sync.WaitGroup
	var next atomic.Int64
	for range inflight {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					w.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if w.Failed() {
		w.FailNow()
	}
}

// A share with many volumes is as fast as a share with few.
func TestManyVolumes(t *testing.T) {
	w := newWorld(t)
	n := *volumes
	ids, made, gone := make([]string, n), make([]time.Duration, n), make([]time.Duration, n)
	w.many(n, 1, func(i int) error {
		begin := time.Now()
		v, err := w.create(t.Context(), fmt.Sprintf("many-%d", i))
		ids[i], made[i] = v.GetVolumeId(), time.Since(begin)
		return err
	})
	begin := time.Now()
	listed := w.list()
	t.Logf("%d volumes are listed in %v", listed, time.Since(begin).Round(time.Millisecond))
	if listed != n {
		t.Errorf("%d volumes are listed, want %d", listed, n)
	}
	w.many(n, 1, func(i int) error {
		begin := time.Now()
		err := w.delete(t.Context(), ids[i])
		gone[i] = time.Since(begin)
		return err
	})
	for what, took := range map[string][]time.Duration{"create": made, "delete": gone} {
		first, last := median(took[:100]), median(took[n-100:])
		ratio := float64(last) / float64(first)
		t.Logf("%s: median of the first hundred %v, of the last %v: %.2f", what, first, last, ratio)
		if *strict && ratio >= 1.5 {
			t.Errorf("%s of the last hundred of %d takes %.2f times as long as of the first", what, n, ratio)
		}
	}
	if left := w.list(); left != 0 {
		t.Errorf("%d volumes are left", left)
	}
}

func median(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)/2]
}

// list counts all volumes, page by page.
func (w *world) list() int {
	w.Helper()
	count, token := 0, ""
	for {
		answer, err := csi.NewControllerClient(w.Conn).ListVolumes(w.Context(),
			&csi.ListVolumesRequest{MaxEntries: 1000, StartingToken: token})
		if err != nil {
			w.Fatal(err)
		}
		count += len(answer.GetEntries())
		if token = answer.GetNextToken(); token == "" {
			return count
		}
	}
}
