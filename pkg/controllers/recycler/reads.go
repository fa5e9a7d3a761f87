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

// moment is how long a list of the whole cluster is valid as a reason to wait.
const moment = 10 * time.Second

// recent holds the last lists of the whole cluster. Many volumes may wait for one node, and share the lists for a
// moment. They never prove that a volume is unused.
type recent struct {
	mu          sync.Mutex
	at          time.Time
	nodes       []corev1.Node
	attachments []storagev1.VolumeAttachment
}

// dependsOnUsers reports whether a step requires that the volume is unused, or depends on where it can be mounted. For
// other steps these are not read.
func dependsOnUsers(next step) bool {
	return slices.Contains([]step{begin, makeClaim, point, makePod, giveBack}, next)
}

// readUsers reads the possible users of a volume, and stops at the first. Pods are read after the claim and before the
// nodes: a pod that is gone before its claim, or before its node's report, is no user. For a scrub pod it reads only
// the cluster's lists, which show where the volume can be mounted, and who else has its storage.
func (r *reconciler) readUsers(ctx context.Context, volume *corev1.PersistentVolume, next step) (u users, err error) {
	if next == makePod {
		err = r.readRest(ctx, &u, volume, next)
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
	u.reports = r.readReports(ctx, volume)
	if before, found := r.recently(u, volume); found {
		return before, nil
	}
	err = r.readRest(ctx, &u, volume, next)
	return u, err
}

// readRest reads the lists of the whole cluster.
func (r *reconciler) readRest(ctx context.Context, u *users, volume *corev1.PersistentVolume, next step) error {
	if err := r.readCluster(ctx, u); err != nil {
		return err
	}
	return r.readVolumes(ctx, u, volume, next)
}

// readVolumes reads the PersistentVolumes that may show the same storage. Those in the cache are a reason to wait. The
// cache may be behind, so they are no reason to erase or hand over the storage: before these steps it also reads past
// the cache.
func (r *reconciler) readVolumes(ctx context.Context, u *users, volume *corev1.PersistentVolume, next step) error {
	var volumes corev1.PersistentVolumeList // They belong to the cache and must not be changed.
	if err := r.cache.List(ctx, &volumes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	u.volumes = volumes.Items
	if next != makePod && next != giveBack || u.elsewhere(volume) != "" {
		return nil
	}
	return r.readTwins(ctx, u, volume)
}

// volumesAtOnce is the page size for reading PersistentVolumes past the cache.
const volumesAtOnce = 500

// readTwins reads past the cache until a page has a PersistentVolume that may show the same storage, and returns that
// page in u.
func (r *reconciler) readTwins(ctx context.Context, u *users, volume *corev1.PersistentVolume) error {
	for next := ""; ; {
		var page corev1.PersistentVolumeList
		if err := r.live.List(ctx, &page, client.Limit(volumesAtOnce), client.Continue(next)); err != nil {
			return err
		}
		if (users{volumes: page.Items}).elsewhere(volume) != "" {
			u.volumes = page.Items
			return nil
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// recently adds the recent lists to the users, and reports whether the volume has a user then.
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
	for i := range nodes.Items { // The lists are kept for a while.
		nodes.Items[i].ManagedFields, nodes.Items[i].Status.Images = nil, nil
	}
	u.attachments, u.nodes = attachments.Items, nodes.Items
	r.recent.mu.Lock()
	defer r.recent.mu.Unlock()
	r.recent.at, r.recent.attachments, r.recent.nodes = at, u.attachments, u.nodes
	return nil
}

// attaches reports whether VolumeAttachments show where a volume is used.
func (r *reconciler) attaches(ctx context.Context, volume *corev1.PersistentVolume) (bool, error) {
	if volume.Spec.CSI == nil {
		return false, nil
	}
	driver, err := find(ctx, r.live, "", volume.Spec.CSI.Driver, &storagev1.CSIDriver{})
	if err != nil || driver == nil {
		return err == nil, err // Without a CSIDriver Kubernetes attaches.
	}
	return driver.Spec.AttachRequired == nil || *driver.Spec.AttachRequired, nil
}
