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

// TestKilled kills the provisioner, the driver, and both at random moments while claims come and go. Afterwards,
// volumes and PersistentVolumes match one to one. Once the claims are deleted, neither exists.
func TestKilled(t *testing.T) {
	c := cluster(t)
	s := c.NewSpace(t)
	t.Logf("to repeat the plan, -seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	series := &series{s: s, class: s.Class("image", map[string]string{"pool": "image"},
		corev1.PersistentVolumeReclaimDelete), random: random}
	killed := make(chan error, 1)
	go func() { killed <- killAtRandom(t.Context(), c, rand.New(rand.NewPCG(*seed, 1))) }()
	series.until(killed)
	series.settle()
	t.Logf("%d claims were made, %d of them deleted in the meantime", series.made, series.made-len(series.there))
}

// TestRolledOut replaces the driver with all its sidecars again and again, as an update does, while claims come and go.
// Every volume that was acknowledged to the provisioner exists, and no other.
func TestRolledOut(t *testing.T) {
	c := cluster(t)
	s := c.NewSpace(t)
	t.Logf("to repeat the plan, -seed %d", *seed)
	class := s.Class("image", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	series := &series{s: s, class: class, random: rand.New(rand.NewPCG(*seed, 0))}
	rolled := make(chan error, 1)
	go func() { rolled <- rollOut(t.Context(), c) }()
	series.until(rolled)
	series.settle()
	t.Logf("%d claims were made, %d of them deleted in the meantime", series.made, series.made-len(series.there))
}

// rollOut restarts the driver as often as TestKilled kills it.
func rollOut(ctx context.Context, c *workload.Cluster) error {
	driver, namespace := "statefulset/"+deployed.StatefulSet, "--namespace="+deployed.Namespace
	for range *kills {
		if _, err := c.Kubectl(ctx, "rollout", "restart", driver, namespace); err != nil {
			return err
		}
		if _, err := c.Kubectl(ctx, "rollout", "status", driver, namespace, "--timeout=3m"); err != nil {
			return err
		}
	}
	return nil
}

// killAtRandom kills one victim after the other, at random moments.
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

// series is a set of claims that come and go.
type series struct {
	s      *workload.Space
	class  string
	random *rand.Rand
	made   int
	there  []string
}

// step creates some claims and deletes others that are bound. If csi-provisioner is killed just when a claim is deleted
// before it is bound, a volume stays behind: csi-provisioner remembers only in memory that it still has to delete the
// volume. No driver can prevent this. The manager's comparison with the storage reports such a volume.
func (r *series) step() {
	r.s.T.Helper()
	for range 1 + r.random.IntN(4) {
		r.made++
		name := fmt.Sprintf("claim-%d", r.made)
		r.s.MakeClaim(workload.Claim(name, r.class, "16Mi"))
		r.there = append(r.there, name)
	}
	claims := r.s.Client.CoreV1().PersistentVolumeClaims(r.s.Namespace)
	bound := r.bound()
	for len(r.there) > 6 && len(bound) > 0 {
		i := r.random.IntN(len(bound))
		r.s.Must(claims.Delete(r.s.Context(), bound[i], metav1.DeleteOptions{}))
		r.there = slices.DeleteFunc(r.there, func(name string) bool { return name == bound[i] })
		bound = slices.Delete(bound, i, i+1)
	}
}

// bound returns the claims of the series that exist and are bound.
func (r *series) bound() (names []string) {
	r.s.T.Helper()
	claims, err := r.s.Client.CoreV1().PersistentVolumeClaims(r.s.Namespace).List(r.s.Context(), metav1.ListOptions{})
	r.s.Must(err)
	for _, claim := range claims.Items {
		if claim.Status.Phase == corev1.ClaimBound && slices.Contains(r.there, claim.Name) {
			names = append(names, claim.Name)
		}
	}
	return names
}

// until takes steps until a concurrent operation has ended.
func (r *series) until(ended <-chan error) {
	r.s.T.Helper()
	for {
		r.step()
		select {
		case err := <-ended:
			r.s.Must(err)
			return
		case <-time.After(time.Duration(r.random.IntN(700)) * time.Millisecond):
		}
	}
}

// settle waits until the remaining claims are bound, compares the API with the disk, and deletes all claims.
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
