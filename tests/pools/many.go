package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// manySets is the number of sets.
const manySets = 50

// many measures a change of one set among many volumes, and prints the manager's memory and requests for it.
func many(ctx context.Context, p *plane, o options) error {
	each := o.volumes / manySets
	if err := p.makeVolumes(ctx, each); err != nil {
		return err
	}
	for i := range manySets {
		set := newSet(fmt.Sprintf("set-%d", i), each)
		set.Spec.MaximumReplicas += 10
		if err := p.client.Create(ctx, set); err != nil {
			return err
		}
	}
	begun := time.Now()
	audit, err := p.audit()
	if err != nil {
		return err
	}
	if _, err := p.manager(ctx, 0); err != nil {
		return err
	}
	for i := range manySets {
		if err := p.counted(ctx, i, each); err != nil {
			return err
		}
	}
	fmt.Printf("%d volumes in %d sets: counted %v after the start, %s\n", o.volumes, manySets,
		time.Since(begun).Round(time.Millisecond), p.memory())
	if err := audit.print(1); err != nil {
		return err
	}
	return p.changeSets(ctx, each)
}

// changeSets increases one set after another by one volume.
func (p *plane) changeSets(ctx context.Context, each int) error {
	audit, err := p.audit()
	if err != nil {
		return err
	}
	const changes = 10
	var longest, all time.Duration
	for i := range changes {
		set := &v1alpha1.PersistentVolumeSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("set-%d", i)}}
		patch := fmt.Sprintf(`{"spec":{"minimumReplicas":%d}}`, each+1)
		begun := time.Now()
		if err := p.client.Patch(ctx, set, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			return err
		}
		if err := p.counted(ctx, i, each+1); err != nil {
			return err
		}
		took := time.Since(begun)
		longest, all = max(longest, took), all+took
	}
	fmt.Printf("a set that wants one more has it after %v on the average, %v at most, %s; requests for each change:\n",
		(all / changes).Round(time.Millisecond), longest.Round(time.Millisecond), p.memory())
	return audit.print(changes)
}

// makeVolumes creates the unbound volumes of all sets by hand, as another driver's administrator would.
func (p *plane) makeVolumes(ctx context.Context, each int) error {
	var group sync.WaitGroup
	failed := make(chan error, manySets)
	for i := range manySets {
		group.Go(func() {
			for j := range each {
				if err := p.makeVolume(ctx, fmt.Sprintf("set-%d", i), j); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	return <-failed
}

func (p *plane) makeVolume(ctx context.Context, set string, number int) error {
	name := fmt.Sprintf("%s-%d", set, number)
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{setLabel: set}}}
	like := newClaim(name, class).Spec
	v.Spec = corev1.PersistentVolumeSpec{
		AccessModes: like.AccessModes, Capacity: like.Resources.Requests, StorageClassName: class,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver,
			VolumeHandle: name}},
	}
	if err := p.client.Create(ctx, v); err != nil {
		return err
	}
	before := client.MergeFrom(v.DeepCopy()) // Kubernetes' controller makes only 20 requests a second for it.
	v.Status.Phase = corev1.VolumeAvailable
	return p.client.Status().Patch(ctx, v, before)
}

// counted waits until a set's status reports the number of unbound volumes.
func (p *plane) counted(ctx context.Context, number, want int) error {
	set := &v1alpha1.PersistentVolumeSet{}
	return p.soon(ctx, fmt.Sprintf("%d unbound volumes of set-%d", want, number), func() error {
		err := p.client.Get(ctx, client.ObjectKey{Name: fmt.Sprintf("set-%d", number)}, set)
		if err == nil && int(set.Status.UnboundReplicas) != want {
			err = fmt.Errorf("there are %d", set.Status.UnboundReplicas)
		}
		return err
	})
}

// memory returns the resident memory of the manager.
func (p *plane) memory() string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(line, []byte(p.programs["stowage-manager"]+"\x00")) {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		for line := range strings.Lines(string(status)) {
			if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
				return "the manager has " + strings.TrimSpace(rest)
			}
		}
	}
	return "the manager is gone"
}
