package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// TestKilled kills the provisioner, the driver, and both at random moments while claims come and go: then there is a volume
// for each PersistentVolume and a PersistentVolume for each volume, and when the claims are gone there is neither.
func TestKilled(t *testing.T) {
	c := cluster(t)
	s := c.NewSpace(t)
	t.Logf("to repeat the plan, -seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	series := &series{s: s, class: s.Class("image", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete), random: random}
	killed := make(chan error, 1)
	go func() { killed <- killAtRandom(t.Context(), c, rand.New(rand.NewPCG(*seed, 1))) }()
	for done := false; !done; {
		series.step()
		select {
		case err := <-killed:
			s.Must(err)
			done = true
		case <-time.After(time.Duration(random.IntN(700)) * time.Millisecond):
		}
	}
	series.settle()
	t.Logf("%d claims were made, %d of them deleted in the meantime", series.made, series.made-len(series.there))
}

// killAtRandom kills one after the other, at random moments.
func killAtRandom(ctx context.Context, c *workload.Cluster, random *rand.Rand) error {
	victims := []func(context.Context, *workload.Cluster) error{
		func(ctx context.Context, c *workload.Cluster) error { return endContainer(ctx, c, "csi-provisioner") },
		func(ctx context.Context, c *workload.Cluster) error { return endContainer(ctx, c, deployed.Container) },
		replaceDriverAtOnce,
	}
	for range *kills {
		for _, kill := range victims {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(random.IntN(2000)) * time.Millisecond):
			}
			if err := kill(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// series are claims that come and go.
type series struct {
	s      *workload.Space
	class  string
	random *rand.Rand
	made   int
	there  []string
}

// step makes some claims and deletes others, bound or not.
func (r *series) step() {
	r.s.T.Helper()
	for range 1 + r.random.IntN(4) {
		r.made++
		name := fmt.Sprintf("claim-%d", r.made)
		r.s.MakeClaim(workload.Claim(name, r.class, "16Mi"))
		r.there = append(r.there, name)
	}
	for len(r.there) > 6 {
		i := r.random.IntN(len(r.there))
		claims := r.s.Client.CoreV1().PersistentVolumeClaims(r.s.Namespace)
		r.s.Must(claims.Delete(r.s.Context(), r.there[i], metav1.DeleteOptions{}))
		r.there = slices.Delete(r.there, i, i+1)
	}
}

// settle waits until what is left is bound, compares the API with the disk, and deletes all.
func (r *series) settle() {
	r.s.T.Helper()
	for _, name := range r.there {
		r.s.Bound(name)
	}
	r.s.Must(workload.Eventually(r.s.Context(), "as many volumes as claims", func() error {
		want := len(r.there)
		view, err := r.s.Look(r.s.Context())
		if err != nil {
			return err
		}
		var handles []string
		for _, volume := range r.s.Volumes() {
			handles = append(handles, volume.Spec.CSI.VolumeHandle)
		}
		slices.Sort(handles)
		if len(handles) != want || !slices.Equal(handles, view.Handles()) || len(view.Entries) != want {
			return fmt.Errorf("for %d claims there are the PersistentVolumes of\n%s\nand on the node\n%s",
				want, strings.Join(handles, "\n"), strings.Join(view.Entries, "\n"))
		}
		return nil
	}))
	for _, name := range r.there {
		r.s.DeleteClaim(name)
	}
	r.s.Must(workload.Eventually(r.s.Context(), "the end of all volumes", func() error {
		view, err := r.s.Look(r.s.Context())
		if err == nil && len(view.All()) > 0 {
			err = fmt.Errorf("on the node there are\n%s", strings.Join(view.All(), "\n"))
		}
		return err
	}))
}
