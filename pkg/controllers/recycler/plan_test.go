package recycler

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// released returns the view of a released volume, with changes.
func released(changes ...func(*view)) view {
	v := view{volume: newVolume(), attempts: 3}
	v.volume.Status.Phase = corev1.VolumeReleased
	v.volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "tenant", Name: "claim", UID: "gone"}
	v.users.attaches = true
	for _, change := range changes {
		change(&v)
	}
	return v
}

// begun returns the view of a volume whose scrub is in a state, with its claim and pod.
func begun(s state, changes ...func(*view)) view {
	meta := metav1.ObjectMeta{Namespace: ownNamespace, Name: "scrub", UID: "scrub-uid",
		Labels: map[string]string{v1alpha1.RecyclingAnnotation: "v-uid"}}
	return released(append([]func(*view){func(v *view) {
		v.record = &record{Name: "scrub", State: s, Released: "gone", Claim: "scrub-uid", Message: "why"}
		v.volume.Status.Phase = corev1.VolumeBound
		v.volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ownNamespace, Name: "scrub", UID: "scrub-uid"}
		v.claim = &corev1.PersistentVolumeClaim{ObjectMeta: meta,
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
		v.pod = &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "node"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		v.pod.Finalizers = []string{v1alpha1.RecyclerFinalizer}
	}}, changes...)...)
}

func noPod(v *view)  { v.pod = nil }
func leaves(v *view) { v.pod.DeletionTimestamp = &metav1.Time{} }
func nothingLeft(v *view) {
	v.pod, v.claim, v.volume.Status.Phase = nil, nil, corev1.VolumeReleased
}

func podIs(phase corev1.PodPhase) func(*view) {
	return func(v *view) { v.pod.Status.Phase = phase }
}

func containerRuns(v *view) {
	v.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
}

func noNode(v *view) {
	v.pod.Spec.NodeName = ""
	v.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Message: "0/3 nodes are available"}}
}

func containerWaits(v *view) {
	v.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}
}

func failures(n int) func(*view) { return func(v *view) { v.record.Failures = n } }

// usedBy adds a pod of the released claim.
func usedBy(changes ...func(*corev1.Pod)) func(*view) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "user"},
		Spec: corev1.PodSpec{NodeName: "node", Volumes: claimVolume("claim")}}
	for _, change := range changes {
		change(&pod)
	}
	return func(v *view) { v.users.pods = append(v.users.pods, pod) }
}

func other(source corev1.PersistentVolumeSource) func(*view) {
	return func(v *view) {
		o := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other"}}
		o.Spec.PersistentVolumeSource = source
		v.users.volumes = append(v.users.volumes, o)
	}
}

func notAttached(v *view) { v.users.attaches = false }

func nodeIs(status corev1.ConditionStatus, inUse ...corev1.UniqueVolumeName) func(*view) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	node.Status.VolumesInUse = inUse
	return func(v *view) { v.users.nodes = append(v.users.nodes, node) }
}

func policy(p corev1.PersistentVolumeReclaimPolicy) func(*view) {
	return func(v *view) { v.volume.Spec.PersistentVolumeReclaimPolicy = p }
}

func noted(v *view) { v.noted = true }

func unbound(v *view) { v.volume.Status.Phase, v.volume.Spec.ClaimRef = corev1.VolumeAvailable, nil }

func notWanted(v *view) { delete(v.volume.Annotations, v1alpha1.RecycleAnnotation) }

func attachedTo(volume string) func(*view) {
	return func(v *view) {
		v.users.attachments = []storagev1.VolumeAttachment{{Spec: storagev1.VolumeAttachmentSpec{
			NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		}}}
	}
}

func phase(p corev1.PersistentVolumePhase) func(*view) {
	return func(v *view) { v.volume.Status.Phase = p }
}

type planned struct {
	view view
	step step
	why  string // part of the reason
}

func TestPlan(t *testing.T) {
	for name, c := range map[string]planned{
		"released":                            {released(), begin, ""},
		"Kubernetes failed it":                {released(phase(corev1.VolumeFailed)), begin, ""},
		"bound":                               {released(phase(corev1.VolumeBound)), nothing, ""},
		"available, in a class that is noted": {released(unbound, noted), nothing, ""},
		"available, in another":               {released(unbound), noteClass, ""},
		"freed by hand during a scrub":        {begun(scrubbing, unbound), endPod, ""},
		"freed by hand, and the pod goes":     {begun(scrubbing, unbound, leaves), noteClass, ""},
		"freed by hand, and clean":            {begun(clean, nothingLeft, unbound), noteClass, ""},
		"freed by hand after a failed scrub":  {begun(failed, nothingLeft, unbound, failures(1)), noteClass, ""},
		"freed by hand, given up":             {begun(failed, nothingLeft, unbound, failures(3)), noteClass, ""},
		"freed by hand, in a noted class":     {begun(clean, nothingLeft, unbound, noted), nothing, "why"},
		"freed by hand, and wanted no more":   {begun(clean, nothingLeft, unbound, notWanted), nothing, ""},
		"without the annotation":              {released(notWanted), nothing, ""},
		"another value": {released(func(v *view) {
			v.volume.Annotations[v1alpha1.RecycleAnnotation] = "yes"
		}), nothing, ""},
		"policy Delete": {released(policy(corev1.PersistentVolumeReclaimDelete)), refuse,
			"its reclaim policy is Delete: only volumes of the policy Retain"},
		"policy Recycle": {released(policy(corev1.PersistentVolumeReclaimRecycle)), refuse,
			"its reclaim policy is Recycle"},
		"policy Delete, not wanted": {released(policy(corev1.PersistentVolumeReclaimDelete), notWanted), nothing, ""},
		"being deleted": {released(func(v *view) { v.volume.DeletionTimestamp = &metav1.Time{} }), nothing,
			""},
		"no claim yet":       {begun(scrubbing, nothingLeft, unpointed), makeClaim, ""},
		"the claim is there": {begun(scrubbing, noPod, unpointed), point, ""},
		"the claim is another's": {begun(scrubbing, noPod, unpointed, func(v *view) { v.claim.Labels = nil }), broke,
			"somebody else's"},
		"bound meanwhile": {begun(scrubbing, noPod, unpointed, phase(corev1.VolumeBound)), endClaim, ""},
		"bound meanwhile, and no claim": {begun(scrubbing, nothingLeft, unpointed, phase(corev1.VolumeBound)), drop,
			""},
		"released by another claim": {begun(scrubbing, nothingLeft, unpointed, byAnother), drop, ""},
		"released by another claim, and the scrub claim is there": {begun(scrubbing, noPod, unpointed, byAnother), endClaim,
			""},
		"used meanwhile": {begun(scrubbing, noPod, unpointed, usedBy()), wait, "tenant/user"},
		"no pod yet":     {begun(scrubbing, noPod), makePod, ""},
		"no pod yet, and shared": {begun(scrubbing, noPod, other(newVolume().Spec.PersistentVolumeSource)), wait,
			"other may show the same storage"},
		"the claim is not bound": {begun(scrubbing, noPod,
			func(v *view) { v.claim.Status.Phase = corev1.ClaimPending }), wait, "not bound"},
		"the claim was deleted": {begun(scrubbing, func(v *view) { v.claim = nil }), broke,
			"deleted the scrub claim"},
		"the claim was made anew": {begun(scrubbing, func(v *view) { v.claim.UID = "new" }), broke,
			"deleted the scrub claim"},
		"the pod runs": {begun(scrubbing), work, "recycler/scrub works"},
		"the pod is on no node": {begun(scrubbing, podIs(corev1.PodPending), noNode), wait,
			"recycler/scrub is on no node yet: 0/3 nodes are available"},
		"the image is missing": {begun(scrubbing, podIs(corev1.PodPending), containerWaits), wait,
			"recycler/scrub does not run on node yet: ImagePullBackOff"},
		"the pod has just been made": {begun(scrubbing, podIs("")), wait, "does not run on node yet"},
		"the pod is another's":       {begun(scrubbing, func(v *view) { v.pod.Labels = nil }), broke, "somebody else's"},
		"the pod was deleted":        {begun(scrubbing, leaves), broke, "deleted the scrub pod"},
		"the pod succeeded":          {begun(scrubbing, podIs(corev1.PodSucceeded)), passed, ""},
		"the pod was told to stop": {begun(scrubbing, podIs(corev1.PodSucceeded), leaves), broke,
			"deleted the scrub pod"},
		"the pod failed": {begun(scrubbing, podIs(corev1.PodFailed)), broke, "without a word"},
		"others say that it failed": {begun(scrubbing, podIs(corev1.PodFailed), containerRuns), wait,
			"is Failed, and the kubelet of node does not say"},
		"clean, and the pod is there": {begun(clean, podIs(corev1.PodSucceeded)), endPod, ""},
		"clean, and the pod goes":     {begun(clean, podIs(corev1.PodSucceeded), leaves), freePod, ""},
		"the pod goes and runs":       {begun(failed, leaves), wait, "the kubelet of node does not say"},
		"others say that it ended": {begun(failed, leaves, podIs(corev1.PodFailed), containerRuns), wait,
			"the kubelet of node"},
		"the pod was never on a node":   {begun(failed, leaves, func(v *view) { v.pod.Spec.NodeName = "" }), freePod, ""},
		"clean, and the claim is there": {begun(clean, noPod), endClaim, ""},
		"clean, and all is gone":        {begun(clean, nothingLeft, noted), giveBack, ""},
		"clean, and of a new class":     {begun(clean, nothingLeft), noteClass, ""},
		"clean, not Released yet":       {begun(clean, nothingLeft, phase(corev1.VolumeBound)), wait, "not Released"},
		"clean, and another's":          {begun(clean, nothingLeft, unpointed), broke, "another claim"},
		"clean, and still attached":     {begun(clean, nothingLeft, attachedTo("v")), wait, "attached to node"},
		"failed once":                   {begun(failed, nothingLeft, failures(1)), begin, ""},
		"failed once, and bound to a tenant": {begun(failed, nothingLeft, failures(1), unpointed,
			phase(corev1.VolumeBound)), nothing, ""},
		"failed too often": {begun(failed, nothingLeft, failures(3)), giveUp, "why"},
		"given up": {begun(failed, nothingLeft, failures(3), phase(corev1.VolumeFailed)), nothing,
			"why"},
		"failed too often, and bound":    {begun(failed, nothingLeft, failures(3), phase(corev1.VolumeBound)), nothing, ""},
		"wanted no more":                 {begun(scrubbing, notWanted), endPod, ""},
		"wanted no more, and all gone":   {begun(scrubbing, nothingLeft, notWanted), drop, ""},
		"clean, and wanted no more":      {begun(clean, nothingLeft, notWanted), nothing, ""},
		"failed, and wanted no more":     {begun(failed, nothingLeft, notWanted), nothing, ""},
		"policy Delete during the scrub": {begun(scrubbing, policy(corev1.PersistentVolumeReclaimDelete)), endPod, ""},
		"policy Delete after the scrub": {begun(failed, nothingLeft, policy(corev1.PersistentVolumeReclaimDelete)),
			refuse, "Retain"},
	} {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
}

// unpointed sets the claimRef to the tenant's claim.
func unpointed(v *view) {
	v.volume.Status.Phase = corev1.VolumeReleased
	v.volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "tenant", Name: "claim", UID: "gone"}
	v.record.Claim = ""
}

// byAnother sets the claimRef to a claim that had the volume after the scrub began.
func byAnother(v *view) { v.volume.Spec.ClaimRef.UID = "later" }

func (c planned) check(t *testing.T) {
	t.Helper()
	if next, why := plan(c.view); next != c.step || !strings.Contains(why, c.why) {
		t.Errorf("%q, %q: want %q, %q", next, why, c.step, c.why)
	}
}

// TestUsers checks which users keep a volume from being scrubbed.
func TestUsers(t *testing.T) {
	claim := func(uid types.UID, second int64) func(*view) {
		return func(v *view) {
			v.users.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: uid,
				CreationTimestamp: metav1.Unix(second, 0)}}
		}
	}
	at := func(second int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.Unix(second, 0) }
	}
	is := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase = phase }
	}
	runs := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
	}
	ephemeral := func(p *corev1.Pod) {
		p.Name, p.Spec.Volumes = "claim",
			[]corev1.Volume{{Name: "x", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	}
	for name, c := range map[string]planned{
		"the claim exists":                {released(claim("gone", 1)), wait, "the claim tenant/claim still exists"},
		"a pod":                           {released(usedBy()), wait, "the pod tenant/user"},
		"a pod that never was on a node":  {released(usedBy(func(p *corev1.Pod) { p.Spec.NodeName = "" })), begin, ""},
		"a pod that succeeded":            {released(usedBy(is(corev1.PodSucceeded))), begin, ""},
		"a pod that others call failed":   {released(usedBy(is(corev1.PodFailed), runs)), wait, "tenant/user"},
		"a pod of a later claim":          {released(claim("new", 5), usedBy(at(5))), begin, ""},
		"a pod from before a later claim": {released(claim("new", 5), usedBy(at(4))), wait, "tenant/user"},
		"a pod of another claim": {released(usedBy(func(p *corev1.Pod) { p.Spec.Volumes = claimVolume("b") })),
			begin, ""},
		"a pod with an ephemeral volume": {released(func(v *view) { v.volume.Spec.ClaimRef.Name = "claim-x" },
			usedBy(ephemeral)), wait, "tenant/claim"},
		"an attachment":        {released(attachedTo("v")), wait, "attached to node"},
		"another's attachment": {released(attachedTo("w")), begin, ""},
		"a kubelet that uses it": {released(nodeIs(corev1.ConditionTrue, "kubernetes.io/csi/driver^handle")), wait,
			"the kubelet of node"},
		"a kubelet that uses another": {released(nodeIs(corev1.ConditionTrue, "kubernetes.io/csi/driver^other")), begin,
			""},
		"a silent node, and no attachment": {released(nodeIs(corev1.ConditionUnknown)), begin, ""},
		"a silent node without attach":     {released(notAttached, nodeIs(corev1.ConditionUnknown)), wait, "does not answer"},
		"nodes that answer":                {released(notAttached, nodeIs(corev1.ConditionTrue)), begin, ""},
		"a silent node that cannot mount":  {released(notAttached, elsewhere, nodeIs(corev1.ConditionUnknown)), begin, ""},
		"the same handle": {released(other(newVolume().Spec.PersistentVolumeSource)), wait,
			"other may show the same storage"},
		"another handle": {released(other(handle("driver", "other"))), begin, ""},
	} {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
}

// TestDelay checks that a volume is left alone for the whole delay after each release, even without a reconciliation
// while another claim had it.
func TestDelay(t *testing.T) {
	now := time.Unix(0, 0)
	r := &reconciler{Options: Options{Delay: time.Minute}, memory: newMemory(func() time.Time { return now })}
	for _, claim := range []types.UID{"first", "second"} {
		v := released(func(v *view) { v.volume.Spec.ClaimRef.UID = claim })
		for _, c := range []struct {
			passed time.Duration
			want   step
		}{{0, wait}, {time.Minute - 1, wait}, {1, begin}} {
			now = now.Add(c.passed)
			if next, why := r.pace(v, begin, ""); next != c.want {
				t.Errorf("of the claim %s: %q, %q after %s more: want %q", claim, next, why, c.passed, c.want)
			}
		}
	}
}

// elsewhere restricts the volume to another node.
func elsewhere(v *view) {
	v.volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "host", Operator: corev1.NodeSelectorOpIn,
				Values: []string{"another"}}},
		}},
	}}
}

// TestTolerations checks that a scrub pod tolerates people's taints, but not those that Kubernetes gives to nodes in
// trouble.
func TestTolerations(t *testing.T) {
	var node corev1.Node
	node.Spec.Taints = []corev1.Taint{
		{Key: "dedicated", Value: "storage", Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
	}
	all := tolerations(newVolume(), []corev1.Node{node, node})
	if len(all) != 1 || all[0].Key != "dedicated" || all[0].Value != "storage" {
		t.Errorf("%v", all)
	}
}

// TestRecord checks that invalid records cannot be read.
func TestRecord(t *testing.T) {
	for _, text := range []string{"", "yes", "{}", `{"state":"Clean"}`} {
		v := newVolume()
		v.Annotations[v1alpha1.RecyclingAnnotation] = text
		if one, err := readRecord(v); one != nil || err == nil ||
			!strings.Contains(err.Error(), "remove it to have the volume recycled anew") {
			t.Errorf("%q: %v, %v", text, one, err)
		}
	}
}
