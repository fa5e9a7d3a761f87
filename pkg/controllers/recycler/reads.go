package recycler

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// moment is for how long a list of the whole cluster is good enough as a reason to wait.
const moment = 10 * time.Second

// recent are the lists of the whole cluster that a look has read. Many volumes may wait for one node: it is looked at
// once in a moment for all of them. That nobody uses a volume is never concluded from these.
type recent struct {
	mu          sync.Mutex
	at          time.Time
	nodes       []corev1.Node
	attachments []storagev1.VolumeAttachment
}

// dependsOnUsers reports whether a step is taken only if nobody uses the volume, or only where it can be mounted.
// Nothing of that is read for any other.
func dependsOnUsers(next step) bool {
	return slices.Contains([]step{begin, makeClaim, point, makePod, giveBack}, next)
}

// readUsers reads who may use a volume, until it knows of somebody. Pods come last but for nodes: a pod that is gone
// before its claim, or its node's word, is no user. A scrub's pod is made where the volume can be mounted.
func (r *reconciler) readUsers(ctx context.Context, volume *corev1.PersistentVolume, next step) (u users, err error) {
	if next == makePod {
		err = r.readCluster(ctx, &u)
		return u, err
	}
	ref := volume.Spec.ClaimRef
	if u.claim, err = find(ctx, r.live, ref.Namespace, ref.Name, &corev1.PersistentVolumeClaim{}); err != nil {
		return u, err
	}
	if u.inPods(volume) != "" {
		return u, nil
	}
	var pods corev1.PodList
	if err := r.live.List(ctx, &pods, client.InNamespace(ref.Namespace)); err != nil {
		return u, err
	}
	if u.pods = pods.Items; u.inPods(volume) != "" {
		return u, nil
	}
	if u.attaches, err = r.attaches(ctx, volume); err != nil {
		return u, err
	}
	if before, found := r.recently(u, volume); found {
		return before, nil
	}
	if err := r.readCluster(ctx, &u); err != nil {
		return u, err
	}
	var volumes corev1.PersistentVolumeList // They belong to the cache and must not be changed.
	err = r.cache.List(ctx, &volumes, client.UnsafeDisableDeepCopy)
	u.volumes = volumes.Items
	return u, err
}

// recently adds to the users what another look has read a moment ago, if somebody is among that who uses the volume.
func (r *reconciler) recently(u users, volume *corev1.PersistentVolume) (users, bool) {
	r.recent.mu.Lock()
	defer r.recent.mu.Unlock()
	if r.memory.now().Sub(r.recent.at) >= moment {
		return u, false
	}
	u.nodes, u.attachments = r.recent.nodes, r.recent.attachments
	return u, u.of(volume) != ""
}

// readCluster reads all attachments, then all nodes.
func (r *reconciler) readCluster(ctx context.Context, u *users) error {
	at := r.memory.now()
	var attachments storagev1.VolumeAttachmentList
	if err := r.live.List(ctx, &attachments); err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := r.live.List(ctx, &nodes); err != nil {
		return err
	}
	for i := range nodes.Items { // They are kept for a while.
		nodes.Items[i].ManagedFields, nodes.Items[i].Status.Images = nil, nil
	}
	u.attachments, u.nodes = attachments.Items, nodes.Items
	r.recent.mu.Lock()
	defer r.recent.mu.Unlock()
	r.recent.at, r.recent.attachments, r.recent.nodes = at, u.attachments, u.nodes
	return nil
}

// attaches reports whether a VolumeAttachment tells where a volume is used.
func (r *reconciler) attaches(ctx context.Context, volume *corev1.PersistentVolume) (bool, error) {
	if volume.Spec.CSI == nil {
		return false, nil
	}
	driver, err := find(ctx, r.live, "", volume.Spec.CSI.Driver, &storagev1.CSIDriver{})
	if err != nil || driver == nil {
		return err == nil, err // Without an object Kubernetes attaches.
	}
	return driver.Spec.AttachRequired == nil || *driver.Spec.AttachRequired, nil
}
