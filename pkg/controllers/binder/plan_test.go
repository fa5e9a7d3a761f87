package binder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

type (
	pvc = corev1.PersistentVolumeClaim
	pv  = corev1.PersistentVolume
)

func newClaim(change ...func(*pvc)) *pvc {
	c := &pvc{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c-uid"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: size("2Gi")},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func size(text string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
}

// newVolume returns a ready volume, with changes.
func newVolume(name string, change ...func(*pv)) *pv {
	v := &pv{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "driver"}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size("2Gi"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: "fast",
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "driver",
				VolumeHandle: name}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	for _, f := range change {
		f(v)
	}
	return v
}

func of(text string) func(*pv) { return func(v *pv) { v.Spec.Capacity = size(text) } }

func phase(p corev1.PersistentVolumePhase) func(*pv) { return func(v *pv) { v.Status.Phase = p } }

// named sets the claimRef as the controller, the scheduler or the binder does.
func named(uid types.UID) func(*pv) {
	return func(v *pv) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "c", UID: uid}
		v.Annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
	}
}

// byAPerson removes the annotation of a controller, as for a claimRef that a person wrote.
func byAPerson(v *pv) { delete(v.Annotations, "pv.kubernetes.io/bound-by-controller") }

func within(zone string) func(*pv) {
	return func(v *pv) {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn,
					Values: []string{zone}}},
			}},
		}}
	}
}

func boundTo(volume string) func(*pvc) {
	return func(c *pvc) {
		c.Spec.VolumeName = volume
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes",
			"pv.kubernetes.io/bound-by-controller": "yes"}
	}
}

func provisioned(c *pvc) {
	c.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": "driver"}
}

func newView(claim *pvc, change ...func(*view)) view {
	v := view{
		driver: "driver", claim: claim, pooled: true, nodes: []map[string]string{{"zone": "a"}},
		class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "driver"},
	}
	for _, f := range change {
		f(&v)
	}
	return v
}

func free(volumes ...*pv) func(*view) { return func(v *view) { v.others = volumes } }

func claimed(volumes ...*pv) func(*view) { return func(v *view) { v.named = volumes } }

func waits(v *view) { v.class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer) }

// TestBegin checks which ready volume a claim gets.
func TestBegin(t *testing.T) {
	group := "snapshot.storage.k8s.io"
	tests := map[string]struct {
		view view
		want string
	}{
		"the smallest that fits": {newView(newClaim(),
			free(newVolume("5", of("5Gi")), newVolume("3", of("3Gi")), newVolume("1", of("1Gi")))), "3"},
		"none is large enough": {newView(newClaim(), free(newVolume("1", of("1Gi")))), ""},
		"none is there":        {newView(newClaim()), ""},
		"the class has no set": {newView(newClaim(), free(newVolume("v")), func(v *view) { v.pooled = false }), ""},
		"the class is another's": {newView(newClaim(), free(newVolume("v")),
			func(v *view) { v.class.Provisioner = "other" }), ""},
		"the class is gone":        {newView(newClaim(), free(newVolume("v")), func(v *view) { v.class = nil }), ""},
		"the scheduler chooses":    {newView(newClaim(), free(newVolume("v")), waits), ""},
		"its volume is being made": {newView(newClaim(provisioned), free(newVolume("v"))), ""},
		"the claim is being deleted": {newView(newClaim(func(c *pvc) { c.DeletionTimestamp = &metav1.Time{} }),
			free(newVolume("v"))), ""},
		"the claim is lost": {newView(newClaim(func(c *pvc) { c.Status.Phase = corev1.ClaimLost }),
			free(newVolume("v"))), ""},
		"a snapshot is its source": {newView(newClaim(func(c *pvc) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group}
		}), free(newVolume("v"))), ""},
		"anything is its source": {newView(newClaim(func(c *pvc) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Name: "x"}
		}), free(newVolume("v"))), ""},
		"another driver's volume": {newView(newClaim(),
			free(newVolume("v", func(v *pv) { v.Spec.CSI.Driver = "other" }))), ""},
		"no driver's volume": {newView(newClaim(), free(newVolume("v", func(v *pv) { v.Spec.CSI = nil }))), ""},
		"a volume that goes": {newView(newClaim(),
			free(newVolume("v", func(v *pv) { v.DeletionTimestamp = &metav1.Time{} }))), ""},
		"a volume that nobody saw": {newView(newClaim(), free(newVolume("v", phase(corev1.VolumePending)))), ""},
		"a released volume":        {newView(newClaim(), free(newVolume("v", phase(corev1.VolumeReleased)))), ""},
		"another's volume":         {newView(newClaim(), free(newVolume("v", named("other")))), ""},
		"another class's volume": {newView(newClaim(),
			free(newVolume("v", func(v *pv) { v.Spec.StorageClassName = "slow" }))), ""},
		"a volume of other modes": {newView(newClaim(),
			free(newVolume("v", func(v *pv) { v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany} }))),
			""},
		"a block volume": {newView(newClaim(),
			free(newVolume("v", func(v *pv) { v.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }))), ""},
		"a volume of other attributes": {newView(newClaim(),
			free(newVolume("v", func(v *pv) { v.Spec.VolumeAttributesClassName = ptr.To("gold") }))), ""},
		"attributes that no volume has": {
			newView(newClaim(func(c *pvc) { c.Spec.VolumeAttributesClassName = ptr.To("gold") }), free(newVolume("v"))), "",
		},
		"a volume that was grown": {newView(newClaim(),
			free(newVolume("v", func(v *pv) { v.Annotations[preResize] = "1Gi" }))), ""},
		"a volume that no node reaches": {newView(newClaim(),
			free(newVolume("v", within("b")), newVolume("w", of("9Gi"), within("a")))), "w"},
		"the selector": {
			newView(newClaim(func(c *pvc) {
				c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "x"}}
			}),
				free(newVolume("v"), newVolume("w", of("9Gi"), func(v *pv) { v.Labels = map[string]string{"disk": "x"} }))), "w",
		},
		"a person reserved another for it": {
			newView(newClaim(), free(newVolume("v")), claimed(newVolume("w", named(""), byAPerson))), "",
		},
		"an earlier claim of the name had another": {
			newView(newClaim(), free(newVolume("v")), claimed(newVolume("w", named("old"), phase(corev1.VolumeReleased)))), "v",
		},
		"an earlier one had another, which failed": {
			newView(newClaim(), free(newVolume("v")), claimed(newVolume("w", named("old"), phase(corev1.VolumeFailed)))), "v",
		},
		"an earlier one had another, and is perhaps still there": {
			newView(newClaim(), free(newVolume("v")), claimed(newVolume("w", named("old"), phase(corev1.VolumeBound)))), "",
		},
		"an earlier one had another, and a person reserved a third": {
			newView(newClaim(), free(newVolume("v")),
				claimed(newVolume("w", named("old"), phase(corev1.VolumeReleased)), newVolume("x", named(""), byAPerson))), "",
		},
		"it is in another already": {newView(newClaim(), free(newVolume("v")), claimed(newVolume("w", named("c-uid")))), ""},
	}
	for name, test := range tests {
		if got := nameOf(plan(test.view).begin); got != test.want {
			t.Errorf("%s: the claim is given %q, want %q", name, got, test.want)
		}
	}
}

func nameOf(v *pv) string {
	if v == nil {
		return ""
	}
	return v.Name
}

// TestFinish checks which bindings are finished, whoever began them.
func TestFinish(t *testing.T) {
	tests := map[string]struct {
		view view
		want string
	}{
		"begun by a controller":  {newView(newClaim(), claimed(newVolume("v", named("c-uid")))), "v"},
		"begun by the scheduler": {newView(newClaim(), waits, claimed(newVolume("v", named("c-uid")))), "v"},
		"the volume's phase is written": {newView(newClaim(),
			claimed(newVolume("v", named("c-uid"), phase(corev1.VolumeBound)))), "v"},
		"its own volume is made meanwhile": {newView(newClaim(provisioned), claimed(newVolume("v", named("c-uid")))), "v"},
		"for an earlier claim of the name": {newView(newClaim(), claimed(newVolume("v", named("old")))), ""},
		"a person reserved it":             {newView(newClaim(), claimed(newVolume("v", named(""), byAPerson))), ""},
		"nobody saw the volume": {newView(newClaim(),
			claimed(newVolume("v", named("c-uid"), phase(corev1.VolumePending)))), ""},
		"the volume is released": {newView(newClaim(),
			claimed(newVolume("v", named("c-uid"), phase(corev1.VolumeReleased)))), ""},
		"the volume goes": {newView(newClaim(),
			claimed(newVolume("v", named("c-uid"), func(v *pv) { v.DeletionTimestamp = &metav1.Time{} }))), ""},
		"the claim goes": {newView(newClaim(func(c *pvc) { c.DeletionTimestamp = &metav1.Time{} }),
			claimed(newVolume("v", named("c-uid")))), ""},
		"the scheduler chose a block volume": {
			newView(newClaim(), waits,
				claimed(newVolume("v", named("c-uid"), func(v *pv) { v.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }))),
			"",
		},
		"Kubernetes chose for a clone": {
			newView(newClaim(func(c *pvc) { c.Spec.DataSource = &corev1.TypedLocalObjectReference{Name: "x"} }),
				claimed(newVolume("v", named("c-uid")))), "",
		},
		"Kubernetes chose for a copy of anything": {
			newView(newClaim(func(c *pvc) { c.Spec.DataSourceRef = &corev1.TypedObjectReference{Name: "x"} }),
				claimed(newVolume("v", named("c-uid")))), "",
		},
		"only the status is missing": {newView(newClaim(boundTo("v")),
			claimed(newVolume("v", named("c-uid"), phase(corev1.VolumeBound)))), "v"},
		"nothing is missing": {newView(newClaim(boundTo("v"), isBound),
			claimed(newVolume("v", named("c-uid"), phase(corev1.VolumeBound)))), ""},
		"a person wrote the volume": {newView(newClaim(func(c *pvc) { c.Spec.VolumeName = "v" }),
			claimed(newVolume("v", named("c-uid")))), ""},
		"the volume is another's now": {newView(newClaim(boundTo("v")), claimed(newVolume("v", named("old")))), ""},
	}
	for name, test := range tests {
		if got := nameOf(plan(test.view).finish); got != test.want {
			t.Errorf("%s: %q is finished, want %q", name, got, test.want)
		}
	}
}

func isBound(c *pvc) { c.Status.Phase = corev1.ClaimBound }

// TestFree checks which volumes that name a claim bound to the volume "v" are freed.
func TestFree(t *testing.T) {
	tests := map[string]struct {
		volume *pv
		want   bool
	}{
		"another":                         {newVolume("w", named("c-uid")), true},
		"another, whose phase is written": {newVolume("w", named("c-uid"), phase(corev1.VolumeBound)), true},
		"its own":                         {newVolume("v", named("c-uid")), false},
		"one that a person chose":         {newVolume("w", named("c-uid"), byAPerson), false},
		"one of an earlier claim":         {newVolume("w", named("old")), false},
		"one that is released":            {newVolume("w", named("c-uid"), phase(corev1.VolumeReleased)), false},
		"one that has failed":             {newVolume("w", named("c-uid"), phase(corev1.VolumeFailed)), false},
		"one that goes": {newVolume("w", named("c-uid"),
			func(v *pv) { v.DeletionTimestamp = &metav1.Time{} }), false},
		"another driver's": {newVolume("w", named("c-uid"), func(v *pv) { v.Spec.CSI.Driver = "other" }),
			false},
	}
	for name, test := range tests {
		if got := plan(newView(newClaim(boundTo("v"), isBound), claimed(test.volume))).free; (len(got) == 1) != test.want {
			t.Errorf("%s: given back are %d", name, len(got))
		}
	}
	if got := plan(newView(newClaim(), claimed(newVolume("w", named("c-uid"))))).free; len(got) > 0 {
		t.Errorf("a claim that is not bound loses %d", len(got))
	}
}
