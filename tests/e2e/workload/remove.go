package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
)

// remove deletes the namespace, and fails the test if anything is left of its volumes.
func (s *Space) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*Patience)
	defer cancel()
	if s.T.Failed() {
		s.T.Logf("%s", s.explain(Namespaces(), s.Namespace))
	}
	names := s.handles
	volumes, err := s.volumes(ctx)
	if err != nil {
		s.T.Error(err)
	}
	for _, volume := range volumes {
		names = append(names, volume.Name, volume.Spec.CSI.VolumeHandle)
	}
	if err := s.removeNamespace(ctx, s.Namespace); err != nil {
		s.T.Errorf("%v\n%s", err, s.explain(Namespaces(), s.Namespace))
	}
	for _, volume := range volumes {
		if err := s.AwaitGone(ctx, Volumes(), "", volume.Name); err != nil {
			s.T.Errorf("%v\n%s", err, s.explain(Volumes(), volume.Name))
		}
	}
	if err := s.clean(ctx, names); err != nil {
		s.T.Error(err)
	}
}

// volumes returns the PersistentVolumes of the namespace's claims.
func (s *Space) volumes(ctx context.Context) ([]corev1.PersistentVolume, error) {
	return s.volumesOf(ctx, func(namespace string) bool { return namespace == s.Namespace })
}

// volumesOf returns the drivers' PersistentVolumes for claims in the namespaces.
func (c *Cluster) volumesOf(ctx context.Context, in func(namespace string) bool) ([]corev1.PersistentVolume, error) {
	list, err := c.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var found []corev1.PersistentVolume
	for _, volume := range list.Items {
		if csi := volume.Spec.CSI; csi != nil && strings.HasSuffix(csi.Driver, deployed.Drivers) &&
			volume.Spec.ClaimRef != nil && in(volume.Spec.ClaimRef.Namespace) {
			found = append(found, volume)
		}
	}
	return found, nil
}

// clean waits until nothing on the node has one of the names. A snapshot's files are removed shortly after its object.
func (c *Cluster) clean(ctx context.Context, names []string) error {
	return Eventually(ctx, "the end of all volumes and snapshots on the node", func() error {
		view, err := c.Look(ctx)
		if err != nil {
			return err
		}
		if left := view.Of(names...); len(left) > 0 {
			return fmt.Errorf("the node still has:\n%s", strings.Join(left, "\n"))
		}
		return nil
	})
}

// Eventually repeats a check every 200 ms until it returns no error, for conditions that cannot be watched.
func Eventually(ctx context.Context, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v: %w", what, Patience, err)
		case <-tick.C:
		}
	}
}

func (c *Cluster) removeNamespace(ctx context.Context, name string) error {
	// The namespace's controller would delete pods and claims one kind after the other, which is slow.
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	pods := c.Client.CoreV1().Pods(name).DeleteCollection(ctx, now, metav1.ListOptions{})
	claims := c.Client.CoreV1().PersistentVolumeClaims(name).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{})
	err := c.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return errors.Join(pods, claims, err, c.AwaitGone(ctx, Namespaces(), "", name))
}

// Sweep removes the leftovers of an interrupted earlier run.
func (c *Cluster) Sweep(ctx context.Context) error {
	marked := metav1.ListOptions{LabelSelector: label}
	err := c.Dynamic.Resource(Sets().Resource).DeleteCollection(ctx, metav1.DeleteOptions{}, marked)
	if err != nil {
		return err
	}
	namespaces, err := c.Client.CoreV1().Namespaces().List(ctx, marked)
	if err != nil {
		return err
	}
	for _, namespace := range namespaces.Items {
		if err := c.removeNamespace(ctx, namespace.Name); err != nil {
			return err
		}
	}
	return errors.Join(
		c.Client.StorageV1().StorageClasses().DeleteCollection(ctx, metav1.DeleteOptions{}, marked),
		c.Client.StorageV1().VolumeAttributesClasses().DeleteCollection(ctx, metav1.DeleteOptions{}, marked),
		c.sweepVolumes(ctx))
}

// sweepVolumes removes volumes whose tests ended early, including those with the policy Retain.
func (c *Cluster) sweepVolumes(ctx context.Context) error {
	volumes, err := c.volumesOf(ctx, func(namespace string) bool { return strings.HasPrefix(namespace, prefix) })
	if err != nil {
		return err
	}
	for _, volume := range volumes {
		patch := []byte(`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		_, err := c.Client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch,
			metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err := c.AwaitGone(ctx, Volumes(), "", volume.Name); err != nil {
			return err
		}
	}
	return nil
}
