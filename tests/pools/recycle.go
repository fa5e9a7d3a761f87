package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

const (
	retained          = "retained"         // a class with the policy Retain
	recyclerNamespace = "stowage-recycler" // of deploy/kubernetes/recycler
)

// recycle recycles volumes with two recyclers that have the rights of their manifests. The leader is killed again and
// again. There is no node: the command simulates a kubelet's updates of scrub pods.
func recycle(ctx context.Context, p *plane, o options) error {
	if err := p.installRecycler(ctx); err != nil {
		return err
	}
	if err := p.refusesSet(ctx); err != nil {
		return err
	}
	if err := p.releaseVolumes(ctx, o.recycle); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 2)
	go func() { failed <- p.kubelet(ctx) }()
	go func() { failed <- p.killRecyclers(ctx) }()
	audit, err := p.audit()
	if err != nil {
		return err
	}
	begun := time.Now()
	for left := -1; left != 0; {
		select {
		case err := <-failed:
			return err
		case <-time.After(500 * time.Millisecond):
		}
		if left, err = p.unrecycled(ctx); err != nil {
			return err
		}
		if time.Since(begun) > 10*time.Minute {
			return fmt.Errorf("%d volumes are not recycled after ten minutes", left)
		}
	}
	fmt.Printf("%d volumes recycled in %v\n", o.recycle, time.Since(begun).Round(time.Millisecond))
	if err := audit.print(o.recycle); err != nil {
		return err
	}
	return p.claimAgain(ctx, o.recycle)
}

// installRecycler creates the objects of the recycler's manifests except its pods, and a class.
func (p *plane) installRecycler(ctx context.Context) error {
	policy := corev1.PersistentVolumeReclaimRetain
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: retained}, Provisioner: driver,
		ReclaimPolicy: &policy}
	if err := p.client.Create(ctx, class); err != nil {
		return err
	}
	for _, name := range []string{"namespace.yaml", "rbac.yaml"} {
		file, err := os.Open(filepath.Join("deploy/kubernetes/recycler", name))
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // It was read only.
		for documents := yaml.NewYAMLOrJSONDecoder(file, 1<<16); ; {
			o := &unstructured.Unstructured{}
			if err := documents.Decode(o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
			if kind := o.GetKind(); kind != "Namespace" && !strings.HasPrefix(kind, "Cluster") {
				o.SetNamespace(recyclerNamespace)
			}
			if err := p.client.Create(ctx, o); err != nil {
				return err
			}
		}
	}
	config := strings.Replace(p.kubeconfig("https://"+p.address), "user: {token:",
		"user: {as: \"system:serviceaccount:"+recyclerNamespace+":stowage-recycler\", token:", 1)
	return os.WriteFile(filepath.Join(p.folder, "recycler.config"), []byte(config), 0o600)
}

// refusesSet checks that a set with the policy Delete cannot have the annotation for recycling.
func (p *plane) refusesSet(ctx context.Context) error {
	set := newSet("refused", 1)
	set.Spec.Template.Metadata.Annotations = map[string]string{v1alpha1.RecycleAnnotation: "true"}
	err := p.client.Create(ctx, set, client.DryRunAll)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "only volumes of the policy Retain are recycled") {
		return fmt.Errorf("a set of policy Delete whose volumes are to be recycled: %w", err)
	}
	set.Spec.Template.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	return p.client.Create(ctx, set, client.DryRunAll)
}

// releaseVolumes creates released volumes with the annotation.
func (p *plane) releaseVolumes(ctx context.Context, count int) error {
	for i := range count {
		if err := p.client.Create(ctx, newClaim(fmt.Sprintf("first-%d", i), retained)); err != nil {
			return err
		}
	}
	err := p.until(ctx, "the volumes", func() error {
		volumes, err := p.volumes(ctx)
		bound := 0
		for i := range volumes {
			if volumes[i].Status.Phase == corev1.VolumeBound {
				bound++
			}
		}
		if err == nil && bound < count {
			err = fmt.Errorf("%d of %d are bound", bound, count)
		}
		return err
	})
	if err != nil {
		return err
	}
	volumes, err := p.volumes(ctx)
	if err != nil {
		return err
	}
	for i := range volumes {
		before := client.MergeFrom(volumes[i].DeepCopy())
		metav1.SetMetaDataAnnotation(&volumes[i].ObjectMeta, v1alpha1.RecycleAnnotation, "true")
		if err := p.client.Patch(ctx, &volumes[i], before); err != nil {
			return err
		}
	}
	return p.client.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(namespace))
}

func (p *plane) volumes(ctx context.Context) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	err := p.client.List(ctx, &list)
	return list.Items, err
}

// unrecycled counts the volumes, claims and pods that are not finished.
func (p *plane) unrecycled(ctx context.Context) (left int, err error) {
	volumes, err := p.volumes(ctx)
	if err != nil {
		return 0, err
	}
	for i := range volumes {
		_, isBegun := volumes[i].Annotations[v1alpha1.RecyclingAnnotation]
		if isBegun || volumes[i].Status.Phase != corev1.VolumeAvailable || volumes[i].Spec.ClaimRef != nil {
			left++
		}
	}
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	err = errors.Join(p.client.List(ctx, &pods, client.InNamespace(recyclerNamespace)),
		p.client.List(ctx, &claims, client.InNamespace(recyclerNamespace)))
	return left + len(pods.Items) + len(claims.Items), err
}

// kubelet simulates the scrub pods whose claims are bound: they start, and then end.
func (p *plane) kubelet(ctx context.Context) error {
	for {
		var pods corev1.PodList
		if err := p.client.List(ctx, &pods, client.InNamespace(recyclerNamespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			if err := p.runPod(ctx, &pods.Items[i]); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *plane) runPod(ctx context.Context, pod *corev1.Pod) error {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return nil
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil:
		return p.client.SubResource("binding").Create(ctx, pod,
			&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodeName}})
	case pod.DeletionTimestamp != nil:
		pod.Status.Phase = corev1.PodFailed
		return p.client.Status().Update(ctx, pod)
	}
	claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(pod), claim); err != nil {
		return err
	}
	if err := p.client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		return err
	}
	if claim.Status.Phase != corev1.ClaimBound || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID {
		return nil // A kubelet waits for it.
	}
	pod.Status.Phase = corev1.PodSucceeded
	return p.client.Status().Update(ctx, pod)
}

// killRecyclers runs two recyclers and kills one of them every few seconds.
func (p *plane) killRecyclers(ctx context.Context) error {
	var stops [2]func()
	for i := 0; ; i++ {
		if stop := stops[i%2]; stop != nil {
			stop()
		}
		var err error
		stops[i%2], err = p.run(ctx, "stowage-manager", "recycler", "--namespace="+recyclerNamespace, "--image=stowage:dev",
			"--drivers="+driver, "--delay=1s", "--kubeconfig="+filepath.Join(p.folder, "recycler.config"), "--v=2")
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(5+20*(i%2)) * time.Second):
		}
	}
}

// claimAgain creates claims for all volumes. Each must get a recycled one.
func (p *plane) claimAgain(ctx context.Context, count int) error {
	before, err := p.volumes(ctx)
	if err != nil {
		return err
	}
	for i := range count {
		if err := p.client.Create(ctx, newClaim(fmt.Sprintf("second-%d", i), retained)); err != nil {
			return err
		}
	}
	return p.until(ctx, "the claims of the recycled volumes", func() error {
		after, err := p.volumes(ctx)
		if err != nil {
			return err
		}
		bound := 0
		for i := range after {
			if after[i].Status.Phase == corev1.VolumeBound {
				bound++
			}
		}
		if len(after) != len(before) || bound != count {
			return fmt.Errorf("of %d volumes %d are bound, and there were %d: want all %d, and no new one", len(after), bound,
				len(before), count)
		}
		return nil
	})
}
