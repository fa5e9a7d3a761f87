package orphan

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// look reads the storage and Kubernetes. PersistentVolumes are read before and after the storage, slots and attachments
// after it. Changes in between can therefore hide differences, but not create false ones.
func (s *sweeper) look(ctx context.Context) (w world, err error) {
	w.driver, w.listsNodes = s.Driver.Driver(), s.Driver.ListsNodes()
	before, err := s.volumes(ctx)
	if err != nil {
		return w, err
	}
	if w.stored, err = s.Driver.List(ctx); err != nil {
		return w, fmt.Errorf("list the volumes of %s: %w", s.Driver.Driver(), err)
	}
	after, err := s.volumes(ctx)
	if err != nil {
		return w, err
	}
	w.expected, w.named = expected(before), named(after)
	if s.DeleteAfter > 0 {
		if w.slots, err = s.openSlots(ctx); err != nil {
			return w, err
		}
	}
	if !w.listsNodes {
		return w, nil
	}
	if w.attachments, err = s.attachments(ctx, after); err != nil {
		return w, err
	}
	w.nodes, err = s.nodes(ctx)
	return w, err
}

// volumes returns the driver's PersistentVolumes. They belong to the cache and must not be changed.
func (s *sweeper) volumes(ctx context.Context) ([]*corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	if err := s.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list PersistentVolumes: %w", err)
	}
	var volumes []*corev1.PersistentVolume
	for i := range list.Items {
		if source := list.Items[i].Spec.CSI; source != nil && source.Driver == s.Driver.Driver() {
			volumes = append(volumes, &list.Items[i])
		}
	}
	return volumes, nil
}

// named returns the names of PersistentVolumes by handle.
func named(volumes []*corev1.PersistentVolume) map[string]string {
	names := make(map[string]string, len(volumes))
	for _, v := range volumes {
		names[v.Spec.CSI.VolumeHandle] = v.Name
	}
	return names
}

// expected returns the names by handle of the PersistentVolumes whose volume must exist. While a volume is deleted, its
// PersistentVolume is Released or being deleted.
func expected(volumes []*corev1.PersistentVolume) map[string]string {
	names := map[string]string{}
	for _, v := range volumes {
		released := v.Status.Phase == corev1.VolumeReleased || v.Status.Phase == corev1.VolumeFailed
		if v.DeletionTimestamp == nil && (!released ||
			v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain) {
			names[v.Spec.CSI.VolumeHandle] = v.Name
		}
	}
	return names
}

func (s *sweeper) attachments(ctx context.Context, volumes []*corev1.PersistentVolume) ([]attachment, error) {
	handles := make(map[string]string, len(volumes))
	for _, v := range volumes {
		handles[v.Name] = v.Spec.CSI.VolumeHandle
	}
	var list storagev1.VolumeAttachmentList
	if err := s.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list VolumeAttachments: %w", err)
	}
	var attachments []attachment
	for _, a := range list.Items {
		if a.Spec.Attacher != s.Driver.Driver() || isRepair(&a) {
			continue
		}
		item := attachment{name: a.Name, node: a.Spec.NodeName, attached: a.Status.Attached && a.DeletionTimestamp == nil}
		switch source := a.Spec.Source; {
		case source.PersistentVolumeName != nil:
			item.handle = handles[*source.PersistentVolumeName]
		case source.InlineVolumeSpec != nil && source.InlineVolumeSpec.CSI != nil:
			item.handle = source.InlineVolumeSpec.CSI.VolumeHandle
		}
		attachments = append(attachments, item)
	}
	return attachments, nil
}

// nodes returns the names of nodes by their registered ID for the driver.
func (s *sweeper) nodes(ctx context.Context) (map[string][]string, error) {
	var list storagev1.CSINodeList
	if err := s.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list CSINodes: %w", err)
	}
	names := make(map[string][]string, len(list.Items))
	for _, node := range list.Items {
		for _, driver := range node.Spec.Drivers {
			if driver.Name == s.Driver.Driver() {
				names[driver.NodeID] = append(names[driver.NodeID], node.Name)
			}
		}
	}
	for _, of := range names {
		slices.Sort(of)
	}
	return names, nil
}
