package orphan

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// repairMark is the annotation of a VolumeAttachment that was created to be deleted.
	repairMark = "stowage.dev/dangling"
	// nodeIDNote is the annotation from which csi-attacher reads the ID of a node without a registration.
	nodeIDNote = "csi.alpha.kubernetes.io/node-id"
)

func isRepair(a *storagev1.VolumeAttachment) bool { return a.Annotations[repairMark] != "" }

// repair makes csi-attacher detach a volume from a node. An existing VolumeAttachment takes precedence. A node without
// its own ID is left alone, for example while one machine has two nodes.
func (s *sweeper) repair(ctx context.Context, d difference, nodeID string) error {
	if nodeID == "" {
		return nil
	}
	if used, err := s.mayBeInUse(ctx, d); err != nil || used {
		return err
	}
	a := detachment(s.Driver.Driver(), d, nodeID)
	err := s.cache.Create(ctx, a)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the VolumeAttachment by which volume %q is detached from %s: %w", d.handle, d.node, err)
	}
	s.metrics.repairs.Inc()
	s.Log.Info("a dangling attachment is removed", "volume", d.handle, "node", d.node)
	return s.remove(ctx, a)
}

// mayBeInUse reports whether the node's kubelet reports the volume in use, or the Node does not exist: the machine of a
// deleted node may still run.
func (s *sweeper) mayBeInUse(ctx context.Context, d difference) (bool, error) {
	var node corev1.Node
	err := s.live.Get(ctx, client.ObjectKey{Name: d.node}, &node)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read node %s: %w", d.node, err)
	}
	name := corev1.UniqueVolumeName("kubernetes.io/csi/" + s.Driver.Driver() + "^" + d.handle)
	return slices.Contains(node.Status.VolumesInUse, name), nil
}

// detachment returns a VolumeAttachment that can only be detached. It has the name that Kubernetes would give it.
// csi-attacher does not attach with this pair of access modes, which CSI does not have, and ignores them when it
// detaches. Kubernetes thus never sees it attached.
func detachment(driver string, d difference, nodeID string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name:        attachmentName(driver, d.handle, d.node),
			Annotations: map[string]string{repairMark: "true", nodeIDNote: nodeID},
			Finalizers:  []string{attacherFinalizer(driver)},
		},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: driver, NodeName: d.node,
			Source: storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver,
					VolumeHandle: d.handle}},
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			}},
		},
	}
}

// attachmentName returns the name that Kubernetes gives the VolumeAttachment of a volume on a node.
func attachmentName(driver, handle, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// attacherFinalizer returns the finalizer that makes csi-attacher detach.
func attacherFinalizer(driver string) string {
	name := regexp.MustCompile("[^a-zA-Z0-9-]").ReplaceAllString(driver, "-")
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return "external-attacher/" + name
}

// finish deletes the VolumeAttachments of repairs that a manager wrote but did not delete before it stopped.
func (s *sweeper) finish(ctx context.Context) error {
	var list storagev1.VolumeAttachmentList
	if err := s.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list VolumeAttachments: %w", err)
	}
	for _, a := range list.Items {
		if a.Spec.Attacher != s.Driver.Driver() || !isRepair(&a) || a.DeletionTimestamp != nil {
			continue
		}
		if err := s.remove(ctx, a.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

func (s *sweeper) remove(ctx context.Context, a *storagev1.VolumeAttachment) error {
	err := s.cache.Delete(ctx, a, client.Preconditions{UID: &a.UID})
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("delete VolumeAttachment %s: %w", a.Name, err)
	}
	return nil
}
