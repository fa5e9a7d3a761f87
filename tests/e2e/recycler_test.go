package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

const (
	earlier = "the canary of an earlier tenant"
	// recyclerNamespace is the namespace of deploy/kubernetes/recycler.
	recyclerNamespace = "stowage-recycler"
)

// TestRecycler gives volumes of several kinds to one tenant, and then to another, who can read no data of the first.
// The recycler runs from its manifests. A volume without the annotation is left alone, and one with the policy Delete
// is refused.
func TestRecycler(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	deployRecycler(s)
	untouched := s.Class("untouched", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimRetain)
	s.MakeClaim(workload.Claim("untouched", untouched, "16Mi"))
	before := s.Bound("untouched")
	s.DeleteClaim("untouched")

	device := func(claim string) []workload.Mount {
		return []workload.Mount{{Claim: claim, Path: "/data", Device: true}}
	}
	all := []*recycled{
		{s: s, name: "image", pool: "image", mounts: workload.At},
		{s: s, name: "directory", pool: "directory", mounts: workload.At},
		{s: s, name: "block", pool: "image", mounts: device,
			changes: []func(*corev1.PersistentVolumeClaimSpec){workload.Block}},
	}
	for _, step := range []func(*recycled){(*recycled).use, (*recycled).release, (*recycled).useAgain, (*recycled).end} {
		for _, r := range all { // All at the same time, because pods and scrubs are slow.
			step(r)
		}
	}
	recyclesDisk(s)
	refusesDelete(s)

	after := workload.Until(s, workload.Volumes(), before.Name, "is Released", func(v *corev1.PersistentVolume) bool {
		return v.Status.Phase == corev1.VolumeReleased
	})
	if !maps.Equal(after.Annotations, before.Annotations) || after.Spec.ClaimRef.UID != before.Spec.ClaimRef.UID {
		t.Errorf("a volume of policy Retain without the annotation was changed: %v, %v", after.Annotations,
			after.Spec.ClaimRef)
	}
	deletes(s, before.Name)
	nothingOfScrubs(s)
}

// deployRecycler applies the manifests, with other drivers.
func deployRecycler(s *workload.Space) {
	s.T.Helper()
	manifests, err := filepath.Abs(filepath.Join(tree, "deploy/kubernetes/recycler"))
	s.Must(err)
	own := s.T.TempDir()
	manifests, err = filepath.Rel(own, manifests)
	s.Must(err)
	text := fmt.Sprintf(`resources: [%q]
patches:
  - target: {kind: Deployment, name: recycler}
    patch: |
      - op: test
        path: /spec/template/spec/containers/0/args/3
        value: "--drivers=local.csi.stowage.dev,nfs.csi.stowage.dev,ebs.csi.stowage.dev"
      - op: replace
        path: /spec/template/spec/containers/0/args/3
        value: "--drivers=local.csi.stowage.dev,kubernetes.io/local-volume"
      - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--delay=2s"}
  - target: {kind: ValidatingAdmissionPolicy, name: stowage-recycler-volumes}
    patch: |
      - {op: test, path: /spec/variables/0/name, value: drivers}
      - op: replace
        path: /spec/variables/0/expression
        value: "['local.csi.stowage.dev', 'kubernetes.io/local-volume']"
`, manifests)
	s.Must(os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(text), 0o600))
	out, err := s.Kubectl(s.Context(), "apply", "-k", own)
	if err != nil {
		s.T.Fatalf("%v\n%s", err, out)
	}
	s.T.Cleanup(func() {
		if s.T.Failed() {
			out, _ := s.Kubectl(context.Background(), "logs", "-n", recyclerNamespace, "-l",
				"app.kubernetes.io/component=recycler", "--tail=100")
			s.T.Log(out)
		}
		if out, err := s.Kubectl(context.Background(), "delete", "--wait=false", "-k", own); err != nil {
			s.T.Errorf("%v\n%s", err, out)
		}
	})
}

// recycled is a volume that one tenant writes to and another inspects.
type recycled struct {
	s          *workload.Space
	name, pool string
	mounts     func(claim string) []workload.Mount
	changes    []func(*corev1.PersistentVolumeClaimSpec)
	class      string
	volume     string
}

// use starts the first tenant, who writes.
func (r *recycled) use() {
	r.s.T.Helper()
	r.class = r.s.Class(r.name, map[string]string{"pool": r.pool}, corev1.PersistentVolumeReclaimRetain)
	r.s.MakeClaim(workload.Claim(r.name+"-a", r.class, "16Mi", r.changes...))
	r.s.MakePod(workload.Pod(r.name+"-a", leaveTraces, r.mounts(r.name+"-a")))
}

// release waits for the first tenant, and releases the volume.
func (r *recycled) release() {
	r.s.T.Helper()
	succeeds(r.s, r.name+"-a")
	r.volume = r.s.Bound(r.name + "-a").Name
	r.s.ChangeVolume(r.volume, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.RecycleAnnotation))
	r.s.DeletePod(r.name + "-a")
	r.s.DeleteClaim(r.name + "-a")
}

// useAgain waits until the volume is recycled, and starts the second tenant, who inspects it.
func (r *recycled) useAgain() {
	r.s.T.Helper()
	isGivenBack(r.s, r.volume)
	r.refusesClones()
	r.s.MakeClaim(workload.Claim(r.name+"-b", r.class, "16Mi", append(r.changes, workload.Named(r.volume))...))
	r.s.Bound(r.name + "-b")
	r.s.MakePod(workload.Pod(r.name+"-b", findTraces, r.mounts(r.name+"-b")))
}

// refusesClones requests a clone while a recycled volume exists that the clone would be bound to.
func (r *recycled) refusesClones() {
	r.s.T.Helper()
	clone := workload.Claim(r.name+"-c", r.class, "16Mi", append(r.changes, workload.FromClaim(r.name+"-a"))...)
	claims := r.s.Client.CoreV1().PersistentVolumeClaims(r.s.Namespace)
	_, err := claims.Create(r.s.Context(), clone, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "would be bound to an empty volume that was recycled") {
		r.s.T.Errorf("a clone in a class with a recycled volume: %v", err)
	}
}

// end waits for the second tenant.
func (r *recycled) end() {
	r.s.T.Helper()
	succeeds(r.s, r.name+"-b")
	r.s.DeletePod(r.name + "-b")
	deletes(r.s, r.volume)
}

// leaveTraces writes a canary to files of several kinds, or to both ends of a device.
const leaveTraces = `set -e
if [ -b /data ]; then
  echo "` + earlier + `" > /tmp/canary
  dd if=/tmp/canary of=/data conv=notrunc
  dd if=/tmp/canary of=/data bs=4096 seek=4000 conv=notrunc
else
  mkdir -p /data/dir/.hidden
  echo "` + earlier + `" | tee /data/file > /data/dir/.hidden/file
  chown -R 4711:4711 /data/dir && chmod 0 /data/dir/.hidden
  ln -s / /data/link
fi
sync`

// findTraces fails if any data is left.
const findTraces = `set -e
if [ -b /data ]; then
  ! grep -q "` + earlier + `" /data
  [ -z "$(tr -d '\000' < /data | head -c 1)" ]
else
  ! grep -r "` + earlier + `" /data
  [ -z "$(ls -A /data | grep -v '^lost+found$')" ]
fi`

// succeeds waits until a pod has succeeded.
func succeeds(s *workload.Space, pod string) {
	s.T.Helper()
	ended := workload.Until(s, workload.Pods(), pod, "ends", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	if ended.Status.Phase != corev1.PodSucceeded {
		out, _ := s.Kubectl(s.Context(), "logs", "-n", s.Namespace, pod)
		s.T.Fatalf("the pod %s failed: %s", pod, out)
	}
}

// isGivenBack waits until a volume is Available.
func isGivenBack(s *workload.Space, volume string) {
	s.T.Helper()
	v := workload.Until(s, workload.Volumes(), volume, "is recycled", func(v *corev1.PersistentVolume) bool {
		return v.Status.Phase == corev1.VolumeAvailable
	})
	if _, isBegun := v.Annotations[v1alpha1.RecyclingAnnotation]; isBegun || v.Spec.ClaimRef != nil {
		s.T.Errorf("VIOLATION: %s is Available with %v and %v", volume, v.Annotations, v.Spec.ClaimRef)
	}
}

// deletes lets a retained volume be deleted with its claim.
func deletes(s *workload.Space, volume string) {
	s.T.Helper()
	s.ChangeVolume(volume,
		fmt.Sprintf(`{"metadata":{"annotations":{%q:null}},"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`,
			v1alpha1.RecycleAnnotation))
}

// recyclesDisk recycles a volume of no CSI driver: a directory of the node.
func recyclesDisk(s *workload.Space) {
	s.T.Helper()
	path := "/var/tmp/" + s.Namespace
	_, err := s.OnNode(s.Context(), "mkdir", path)
	s.Must(err)
	s.T.Cleanup(func() { _, _ = s.OnNode(context.Background(), "rm", "-r", path) })
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace,
		Annotations: map[string]string{v1alpha1.RecycleAnnotation: "true"}}}
	v.Spec = corev1.PersistentVolumeSpec{
		PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: s.Namespace,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
				Values: []string{s.Node}}},
		}}}},
	}
	_, err = s.Client.CoreV1().PersistentVolumes().Create(s.Context(), v, metav1.CreateOptions{})
	s.Must(err)
	s.T.Cleanup(func() {
		_ = s.Client.CoreV1().PersistentVolumes().Delete(context.Background(), v.Name, metav1.DeleteOptions{})
	})
	tenant := func(name, script string) {
		s.MakeClaim(workload.Claim(name, s.Namespace, "16Mi"))
		s.MakePod(workload.Pod(name, script, workload.At(name)))
		succeeds(s, name)
		s.DeletePod(name)
		s.DeleteClaim(name)
		isGivenBack(s, v.Name)
	}
	tenant("disk-a", leaveTraces)
	tenant("disk-b", findTraces)
}

// refusesDelete checks that an annotated volume of the policy Delete is reported in an event, and deleted with its
// claim.
func refusesDelete(s *workload.Space) {
	s.T.Helper()
	s.MakeClaim(workload.Claim("deleted", s.Class("deleted", map[string]string{"pool": "image"},
		corev1.PersistentVolumeReclaimDelete), "16Mi"))
	volume := s.Bound("deleted").Name
	s.ChangeVolume(volume, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.RecycleAnnotation))
	s.Event(workload.Volumes(), volume, "RecycleRefused", "only volumes of the policy Retain are recycled")
	s.DeleteClaim("deleted")
	s.UntilGone(workload.Volumes(), volume)
}

// nothingOfScrubs waits until no pod or claim of a scrub is left.
func nothingOfScrubs(s *workload.Space) {
	s.T.Helper()
	s.Must(workload.Eventually(s.Context(), "the end of all scrubs", func() error {
		pods, err := s.Client.CoreV1().Pods(recyclerNamespace).List(s.Context(),
			metav1.ListOptions{LabelSelector: v1alpha1.RecyclingAnnotation})
		if err != nil {
			return err
		}
		claims, err := s.Client.CoreV1().PersistentVolumeClaims(recyclerNamespace).List(s.Context(), metav1.ListOptions{})
		if err == nil && len(pods.Items)+len(claims.Items) > 0 {
			err = fmt.Errorf("there are %d pods and %d claims", len(pods.Items), len(claims.Items))
		}
		return err
	}))
}
