package doctor

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// released has a volume of policy Retain whose claim is gone, with the annotation of the recycler, which runs.
func released() *Cluster {
	c := healthy()
	c.Attachments = nil
	v := &c.Volumes[0]
	v.Spec.PersistentVolumeReclaimPolicy, v.Status.Phase = corev1.PersistentVolumeReclaimRetain, corev1.VolumeReleased
	v.Annotations = map[string]string{"stowage.dev/recycle": "true"}
	c.Pods = append(c.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "stowage-recycler", Name: "recycler"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"recycler", "--drivers=" + driver}}}}})
	return c
}

// TestRecycling explains a volume that the recycler is to scrub. It never advises to remove the claimRef: the next
// claim would get the data of the earlier one.
func TestRecycling(t *testing.T) {
	for name, s := range map[string]struct {
		changes     func(c *Cluster, v *corev1.PersistentVolume)
		want        Verdict
		says, proof string
	}{
		"it is scrubbed": {func(*Cluster, *corev1.PersistentVolume) {}, Waiting, "the recycler scrubs the volume", ""},
		"a pod uses it": {func(c *Cluster, v *corev1.PersistentVolume) {
			c.says("PersistentVolume", "", v.Name, "RecycleWaits", "pod shop/web runs")
		}, Waiting, "the recycler scrubs the volume", "pod shop/web runs"},
		"its scrub is refused": {func(c *Cluster, v *corev1.PersistentVolume) {
			c.says("PersistentVolume", "", v.Name, "ScrubRefused", "no namespace")
		}, Broken, "the recycler cannot go on", "no namespace"},
		"its scrub failed": {func(_ *Cluster, v *corev1.PersistentVolume) {
			v.Status.Phase, v.Status.Message = corev1.VolumeFailed, "read-only"
			v.Annotations["stowage.dev/recycling"] = `{"name":"scrub","state":"Failed"}`
		}, Broken, "the recycler could not scrub the volume", "read-only"},
		"it is scrubbed once more": {func(_ *Cluster, v *corev1.PersistentVolume) {
			v.Status.Phase = corev1.VolumeFailed
			v.Annotations["stowage.dev/recycling"] = `{"name":"scrub","state":"Scrubbing"}`
		}, Waiting, "the recycler scrubs the volume", ""},
		"its record cannot be read": {func(c *Cluster, v *corev1.PersistentVolume) {
			c.says("PersistentVolume", "", v.Name, "RecycleRefused", "no JSON")
		}, Broken, "the recycler cannot go on", "no JSON"},
		"Kubernetes gave it up, and the recycler takes it": {func(_ *Cluster, v *corev1.PersistentVolume) {
			v.Status.Phase = corev1.VolumeFailed
		}, Waiting, "the recycler scrubs the volume", ""},
		"no recycler": {func(c *Cluster, _ *corev1.PersistentVolume) { c.Pods = c.Pods[:len(c.Pods)-1] }, Broken,
			"no recycler runs", ""},
		"the recycler is for another driver": {func(c *Cluster, _ *corev1.PersistentVolume) {
			c.Pods[len(c.Pods)-1].Spec.Containers[0].Args[1] = "--drivers=other.csi.example.org"
		}, Broken, "no recycler runs for its driver", ""},
	} {
		c := released()
		s.changes(c, &c.Volumes[0])
		found := c.volumeState(&c.Volumes[0])
		if len(found) != 1 {
			t.Errorf("%s: got %+v, want one finding", name, found)
			continue
		}
		f := found[0]
		if f.Verdict != s.want || !strings.Contains(f.Says, s.says) || !strings.Contains(f.Proof, s.proof) {
			t.Errorf("%s: got %+v, want that it is %s and says %q, with the proof %q", name, f, s.want, s.says, s.proof)
		}
		if strings.HasPrefix(f.Advice, "remove spec.claimRef") {
			t.Errorf("%s: the advice is %q, and the next claim would get the earlier data", name, f.Advice)
		}
	}
}

// TestNotRecycled has volumes that the recycler leaves alone.
func TestNotRecycled(t *testing.T) {
	for name, change := range map[string]func(v *corev1.PersistentVolume){
		"the annotation has another value": func(v *corev1.PersistentVolume) { v.Annotations["stowage.dev/recycle"] = "yes" },
		"no annotation":                    func(v *corev1.PersistentVolume) { v.Annotations = nil },
	} {
		c := released()
		change(&c.Volumes[0])
		if found := c.volumeState(&c.Volumes[0]); len(found) != 1 || found[0].Verdict != Fine {
			t.Errorf("%s: got %+v, want that the volume is retained and fine", name, found)
		}
	}
}
