package recycler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// waiting returns a recycler with number waiting volumes and these objects, its clock, and the number of lists of nodes
// and attachments that it has read.
func waiting(t *testing.T, number int, objects ...client.Object) (r *reconciler, now *time.Time, lists *int) {
	t.Helper()
	lists, now = new(int), new(time.Unix(1000, 0))
	calls := interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			switch into.(type) {
			case *corev1.NodeList, *storagev1.VolumeAttachmentList:
				*lists++
			}
			return c.List(ctx, into, options...)
		},
	}
	r, v, _ := telling(t, record{Name: "scrub", State: failed, Failures: 1}, calls, objects...)
	for i := range number {
		other := v.DeepCopy()
		other.Name, other.UID, other.ResourceVersion = fmt.Sprint("v", i), types.UID(fmt.Sprint("v-uid-", i)), ""
		other.Spec.CSI.VolumeHandle = other.Name
		if err := r.write.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	r.memory.now = func() time.Time { return *now }
	return r, now, lists
}

// waitsFor reconciles a waiting volume, and returns the pause.
func waitsFor(t *testing.T, r *reconciler, volume string) time.Duration {
	t.Helper()
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: volume}})
	if err != nil || result.RequeueAfter < pause {
		t.Fatalf("%s does not wait: %+v, %v", volume, result, err)
	}
	return result.RequeueAfter
}

// TestListsAreShared checks that many volumes that wait for one node share the lists of the cluster, and continue once
// the node answers.
func TestListsAreShared(t *testing.T) {
	no := false
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "driver"},
		Spec: storagev1.CSIDriverSpec{AttachRequired: &no}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	r, now, lists := waiting(t, 20, driver, node)
	for range 3 {
		for i := range 20 {
			waitsFor(t, r, fmt.Sprint("v", i))
		}
	}
	if *lists != 2 {
		t.Errorf("for 20 volumes that wait for one node %d lists are read, want one of nodes and one of attachments", *lists)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := r.write.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(max(moment, retry))
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "v0"}})
	if waits := r.memory.volumes["v0"].why; err != nil || waits != "the last scrub failed a moment ago: " {
		t.Errorf("with the node v0 waits since %q: %+v, %v", waits, result, err)
	}
}

// TestCheapReasonsComeFirst checks that no list of the whole cluster is read while the volume's claim, or a pod of it,
// exists.
func TestCheapReasonsComeFirst(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "claim", UID: "gone"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "user"},
		Spec: corev1.PodSpec{NodeName: "node", Volumes: claimVolume("claim")}}
	for name, object := range map[string]client.Object{"the claim": claim, "a pod": pod} {
		r, _, lists := waiting(t, 0, object)
		if waitsFor(t, r, "v"); *lists > 0 {
			t.Errorf("%s is there, and %d lists of the whole cluster are read", name, *lists)
		}
	}
}

// TestPausesGrow checks that the pauses grow while a volume waits for the same condition, and restart with another
// condition.
func TestPausesGrow(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "claim", UID: "gone"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "user"},
		Spec: corev1.PodSpec{NodeName: "node", Volumes: claimVolume("claim")}}
	r, now, _ := waiting(t, 0, claim, pod)
	for _, c := range []struct{ later, pause time.Duration }{
		{0, pause}, {pause, pause}, {time.Minute, 63 * time.Second / unhurried}, {time.Hour, longest},
	} {
		*now = now.Add(c.later)
		if got := waitsFor(t, r, "v"); got != c.pause {
			t.Errorf("%s later the next look is after %s, want %s", c.later, got, c.pause)
		}
	}
	if err := r.write.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if got := waitsFor(t, r, "v"); got != pause {
		t.Errorf("for another reason the next look is after %s, want %s", got, pause)
	}
}

// TestVolumeThatIsSharedMeanwhile checks that a volume is neither scrubbed nor given back while another
// PersistentVolume, of which the cache does not know yet, shows the same storage.
func TestVolumeThatIsSharedMeanwhile(t *testing.T) {
	for _, at := range []state{scrubbing, clean} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: "scrub",
			UID: "scrub-uid", Labels: map[string]string{v1alpha1.RecyclingAnnotation: "v-uid"}}}
		claim.Status.Phase = corev1.ClaimBound
		r, v, _ := telling(t, record{Name: "scrub", State: at, Claim: "scrub-uid"}, interceptor.Funcs{}, claim)
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ownNamespace, Name: "scrub", UID: "scrub-uid"}
		if err := r.write.Update(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		r.cache = fake.NewClientBuilder().WithScheme(r.write.Scheme()).WithObjects(v.DeepCopy()).Build()
		twin := newVolume()
		twin.Name, twin.UID = "twin", "twin-uid"
		if err := r.write.Create(t.Context(), twin); err != nil {
			t.Fatal(err)
		}
		if scrubs, isFree := steps(t, r); scrubs > 0 || isFree {
			t.Errorf("%s, and shared: there are %d scrub pods, and the volume is given back: %t", at, scrubs, isFree)
		}
		if err := r.write.Delete(t.Context(), twin); err != nil {
			t.Fatal(err)
		}
		if scrubs, isFree := steps(t, r); (scrubs > 0) != (at == scrubbing) || isFree != (at == clean) {
			t.Errorf("%s, and shared no more: there are %d scrub pods, and the volume is given back: %t", at, scrubs, isFree)
		}
	}
}

// steps takes some steps with the volume v. It returns the number of scrub pods, and whether the volume names no claim.
func steps(t *testing.T, r *reconciler) (scrubs int, isFree bool) {
	t.Helper()
	key := types.NamespacedName{Name: "v"}
	for range 4 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	var pods corev1.PodList
	v := &corev1.PersistentVolume{}
	err := errors.Join(r.live.List(t.Context(), &pods, client.InNamespace(ownNamespace)), r.live.Get(t.Context(), key, v))
	if err != nil {
		t.Fatal(err)
	}
	return len(pods.Items), v.Spec.ClaimRef == nil
}
