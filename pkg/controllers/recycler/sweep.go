package recycler

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

const sweepPeriod = time.Minute

// sweepAll runs sweep periodically. Only the leader runs it.
func (r *reconciler) sweepAll(ctx context.Context) error {
	ticker := time.NewTicker(sweepPeriod)
	defer ticker.Stop()
	for {
		if err := r.sweep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "what earlier scrubs left was not removed")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// sweep removes the scrub claims and pods that no record names: a leader that had lost its lease created them, or their
// volume is gone. They are listed before records are read, and a record names them before they are created.
func (r *reconciler) sweep(ctx context.Context) error {
	ours := []client.ListOption{client.InNamespace(r.Namespace), client.HasLabels{v1alpha1.RecyclingAnnotation}}
	var pods corev1.PodList
	if err := r.live.List(ctx, &pods, ours...); err != nil {
		return err
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.live.List(ctx, &claims, ours...); err != nil {
		return err
	}
	var all []error
	for i := range pods.Items {
		all = append(all, r.sweepOne(ctx, &pods.Items[i], view{pod: &pods.Items[i]}))
	}
	for i := range claims.Items {
		all = append(all, r.sweepOne(ctx, &claims.Items[i], view{claim: &claims.Items[i]}))
	}
	return errors.Join(all...)
}

func (r *reconciler) sweepOne(ctx context.Context, o client.Object, v view) error {
	volume, err := find(ctx, r.live, "", o.GetAnnotations()[v1alpha1.RecycledVolumeAnnotation], &corev1.PersistentVolume{})
	if err != nil {
		return err
	}
	if volume != nil && isOf(o, volume.UID) {
		one, err := readRecord(volume)
		if err != nil || one != nil && one.Name == o.GetName() {
			return nil //nolint:nilerr // The volume's own events tell of a record that cannot be read.
		}
	}
	v.volume = &corev1.PersistentVolume{}
	v.volume.UID = types.UID(o.GetLabels()[v1alpha1.RecyclingAnnotation])
	next, _ := v.dismantle()
	return client.IgnoreNotFound(r.take(ctx, v, next, ""))
}
