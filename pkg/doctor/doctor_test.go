package doctor

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const driver = "ebs.csi.stowage.dev"

// healthy is a cluster of two nodes in which pod web uses claim data on node-1.
func healthy() *Cluster {
	c := &Cluster{
		Claims: []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "uid"},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv", StorageClassName: ptr.To("fast"),
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				}},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound,
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
		Volumes: []corev1.PersistentVolume{{
			ObjectMeta: metav1.ObjectMeta{Name: "pv"},
			Spec: corev1.PersistentVolumeSpec{
				ClaimRef:    &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "uid"},
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "vol-1"},
				},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn,
							Values: []string{"a"}}},
					}},
				}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		}},
		Pods: []corev1.Pod{
			servant("controller-1", "controller", "node-2"), servant("plugin-1", "node", "node-1"),
			servant("plugin-2", "node", "node-2"),
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
				Spec: corev1.PodSpec{NodeName: "node-1", Volumes: []corev1.Volume{{
					VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
					},
				}}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning},
			},
		},
		Classes: []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: driver}},
		Drivers: []storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: driver}}},
		Attachments: []storagev1.VolumeAttachment{{
			ObjectMeta: metav1.ObjectMeta{Name: "csi-1", Finalizers: []string{"external-attacher/ebs"}},
			Spec: storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: "node-1",
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")}},
			Status: storagev1.VolumeAttachmentStatus{Attached: true},
		}},
	}
	for _, name := range []string{"node-1", "node-2"} {
		c.Nodes = append(c.Nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a"}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
				Status: corev1.ConditionTrue}}},
		})
		c.CSINodes = append(c.CSINodes, storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: name,
				Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](2)}}}},
		})
	}
	return c
}

// servant is a ready pod of the driver.
func servant(name, does, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "stowage-system", Name: name},
		Spec: corev1.PodSpec{NodeName: node,
			Containers: []corev1.Container{{Name: "stowage", Args: []string{does, "--backend=ebs"}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func (c *Cluster) web() *corev1.Pod { return &c.Pods[3] }

// starting makes web a pod that has its node, and no container yet.
func (c *Cluster) starting() { c.web().Status.Phase = corev1.PodPending }

func (c *Cluster) pending() {
	c.Claims[0].Status.Phase, c.Claims[0].Spec.VolumeName = corev1.ClaimPending, ""
	c.Volumes, c.Attachments = nil, nil
	c.web().Spec.NodeName = ""
	c.starting()
}

func (c *Cluster) says(kind, namespace, name, reason, message string) {
	c.Events = append(c.Events, corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}, Reason: reason,
		Message: message,
	})
}

func (c *Cluster) silent(node int) {
	c.Nodes[node].Status.Conditions[0].Status = corev1.ConditionUnknown
}

func (c *Cluster) crash(pod int) {
	c.Pods[pod].Status.Conditions[0].Status = corev1.ConditionFalse
	c.Pods[pod].Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "stowage", RestartCount: 7,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
			Message: "back-off 5m"}},
	}}
}

// TestHealthy finds nothing wrong, and reports where the volume is.
func TestHealthy(t *testing.T) {
	c := healthy()
	if ill := c.All(); len(ill) != 0 {
		t.Errorf("a healthy cluster has %+v", ill)
	}
	found := c.Pod("shop", "web")
	if len(found) != 1 || found[0].Verdict != Fine {
		t.Fatalf("got %+v, want one that is fine", found)
	}
	for _, part := range []string{"vol-1", driver, "node node-1 (attached: true)", "pod shop/web on node-1"} {
		if !strings.Contains(found[0].Says, part) {
			t.Errorf("%q lacks %q", found[0].Says, part)
		}
	}
}

// TestSituations breaks one thing in a healthy cluster. The first finding about the pod names the cause, and so does
// the first finding about the cluster.
func TestSituations(t *testing.T) {
	deleted := ptr.To(metav1.Now())
	for name, s := range map[string]struct {
		breaks func(c *Cluster)
		want   string // part of the worst finding
		not    Verdict
	}{
		"no claim": {func(c *Cluster) { c.Claims = nil }, "there is no such claim", Fine},
		"no class": {func(c *Cluster) { c.pending(); c.Classes[0].Name = "slow" },
			`the StorageClass "fast" does not exist`, Fine},
		"claim without a class": {func(c *Cluster) { c.pending(); c.Claims[0].Spec.StorageClassName = nil },
			"names no StorageClass", Fine},
		"driver is not installed": {func(c *Cluster) { c.pending(); c.Drivers = nil }, "which is not installed", Fine},
		"controller crashes": {func(c *Cluster) { c.pending(); c.crash(0) }, "was restarted 7 times: nothing is created",
			Fine},
		"no controller": {func(c *Cluster) { c.pending(); c.Pods = c.Pods[1:]; c.Pods = append(c.Pods, c.Pods[2]) },
			"no pod runs the driver's controller", Fine},
		"provisioning fails": {func(c *Cluster) {
			c.pending()
			c.says("PersistentVolumeClaim", "shop", "data", "ProvisioningFailed", "quota")
		}, "could not create the volume", Fine},
		"provisioning takes time": {func(c *Cluster) { c.pending() }, "has not answered", Broken},
		"class without provisioner": {func(c *Cluster) { c.pending(); c.Classes[0].Provisioner = manual },
			"provisions nothing", Broken},
		"no node is found": {func(c *Cluster) {
			c.pending()
			c.Classes[0].VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
			c.web().Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Message: "0/2 nodes"}}
		}, "finds no node", Fine},
		"claim is lost": {func(c *Cluster) { c.Claims[0].Status.Phase = corev1.ClaimLost; c.Volumes = nil },
			"to which the claim was bound is gone", Fine},
		"claim is deleted": {func(c *Cluster) { c.Claims[0].DeletionTimestamp = deleted }, "used by pod shop/web", Fine},
		"wanted volume is taken": {func(c *Cluster) {
			c.pending()
			v := healthy().Volumes[0]
			v.Spec.ClaimRef.UID = "old"
			c.Volumes = append(c.Volumes, v)
			c.Claims[0].Spec.VolumeName = "pv"
		}, "belongs to claim shop/data (UID old", Fine},
		"no node in the zone": {func(c *Cluster) { c.Nodes[0].Labels, c.Nodes[1].Labels = nil, nil }, "zone In a", Fine},
		"zone is down":        {func(c *Cluster) { c.silent(0); c.silent(1) }, "none of them is ready", Fine},
		"attach fails": {func(c *Cluster) {
			c.starting()
			c.Attachments[0].Status = storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "no slot"}}
		}, "could not be attached to node node-1", Fine},
		"no attacher": {func(c *Cluster) {
			c.starting()
			c.Attachments[0].Status.Attached, c.Attachments[0].Finalizers = false, nil
		}, "no csi-attacher has looked", Fine},
		"volume is elsewhere": {func(c *Cluster) { c.starting(); c.Attachments[0].Spec.NodeName = "node-2" },
			"node node-2 has it", Fine},
		"node does not answer": {func(c *Cluster) { c.silent(0); c.web().DeletionTimestamp = deleted }, "does not answer",
			Fine},
		"detach fails": {func(c *Cluster) {
			c.Attachments[0].DeletionTimestamp = deleted
			c.Attachments[0].Status.DetachError = &storagev1.VolumeError{Message: "busy"}
		}, "could not be detached from node node-1", Fine},
		"driver is not on the node": {func(c *Cluster) { c.starting(); c.CSINodes[0].Spec.Drivers = nil },
			"is not registered on node node-1", Fine},
		"node's registrar crashes": {func(c *Cluster) {
			c.starting()
			c.crash(1)
			status := &c.Pods[1].Status
			status.ContainerStatuses[0].Name = "node-driver-registrar"
			status.ContainerStatuses, status.InitContainerStatuses = nil, status.ContainerStatuses
		}, "the container node-driver-registrar is not ready and was restarted 7 times", Fine},
		"node's plugin crashes": {func(c *Cluster) { c.starting(); c.crash(1) },
			"nothing is mounted or unmounted on this node", Fine},
		"mount fails": {func(c *Cluster) {
			c.starting()
			c.says("Pod", "shop", "web", "FailedMount", "wrong fs")
		}, "could not mount", Fine},
		"storage lost the volume": {func(c *Cluster) { c.says("PersistentVolume", "", "pv", "VolumeMissing", "gone") },
			"disagree", Fine},
		"growth fails": {func(c *Cluster) {
			c.Claims[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("9Ti")
			c.says("PersistentVolumeClaim", "shop", "data", "VolumeResizeFailed", "too large")
		}, "has 1Gi and asks for 9Ti", Fine},
		"growth waits": {func(c *Cluster) {
			c.Claims[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		}, "csi-resizer has yet to answer", Broken},
	} {
		t.Run(name, func(t *testing.T) {
			c := healthy()
			s.breaks(c)
			for about, found := range map[string][]Finding{"the pod": Sort(c.Pod("shop", "web")), "the cluster": Sort(c.All())} {
				if name == "no claim" && about == "the cluster" {
					continue // The pod runs already.
				}
				if len(found) == 0 || !strings.Contains(found[0].Says, s.want) || found[0].Verdict == s.not {
					t.Errorf("about %s: got %+v, want %q first, not %s", about, found, s.want, s.not)
				}
			}
		})
	}
}

// TestServantsOfLocalVolumes checks which pod creates and which pod mounts. One pod may do both. In a cluster, a master
// creates.
func TestServantsOfLocalVolumes(t *testing.T) {
	pod := func(name string, containers ...[]string) (p corev1.Pod) {
		p.Name = name
		for _, args := range containers {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Args: args})
		}
		return p
	}
	alone := pod("alone", []string{"standalone", "--backend=local"})
	node := pod("node", []string{"standalone", "--backend=local"}, []string{"volume-worker", "--workers=8"})
	master := pod("master", []string{"master", "--csi-endpoint=unix:///csi/csi.sock"})
	found := pod("found", []string{"master", "--namespace=x"})
	for name, c := range map[string]struct {
		pods          []corev1.Pod
		create, mount string
	}{
		"one node":      {[]corev1.Pod{alone, found}, "alone", "alone"},
		"a cluster":     {[]corev1.Pod{node, master, found}, "master", "node"},
		"no master":     {[]corev1.Pod{node, found}, "", "node"},
		"only a master": {[]corev1.Pod{master}, "master", ""},
	} {
		cluster := &Cluster{Pods: c.pods}
		for does, want := range map[role]string{controllers: c.create, nodes: c.mount} {
			var got []string
			for _, p := range cluster.servants("local.csi.stowage.dev", does, "") {
				got = append(got, p.Name)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: the %s are %q, want %q", name, does, got, want)
			}
		}
	}
}

// TestNode finds the limit of attachments, and a taint that was left behind.
func TestNode(t *testing.T) {
	c := healthy()
	c.Attachments = append(c.Attachments, *c.Attachments[0].DeepCopy())
	c.Nodes[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}}
	text := &bytes.Buffer{}
	if err := Write(text, c.Node("node-1")); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"2 volumes of " + driver + " are attached, and the node takes 2",
		"still has the taint"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%s lacks %q", text, part)
		}
	}
	if found := c.Node("node-9"); found[0].Verdict != Broken {
		t.Errorf("a node that does not exist: %+v", found)
	}
}

// TestOutOfService checks, for each taint that puts a node out of service, whether the advice is to remove it. The
// node's volumes were detached, mounted or not.
func TestOutOfService(t *testing.T) {
	const remove = "kubectl taint nodes node-1 node.kubernetes.io/out-of-service-"
	for name, s := range map[string]struct {
		value  string // of the taint
		inUse  int
		silent bool
		want   Verdict
		says   string
		advice string
	}{
		"failover holds it": {driver, 2, false, Waiting, "reports 2 volumes in use",
			"end the pods there that tolerate it"},
		"failover takes it away": {driver, 0, false, Waiting, "takes the taint away",
			"stowage-manager of " + driver + " does not run with --failover: " + remove},
		"failover's, still silent": {driver, 0, true, Broken, "its volumes detached", "takes the taint away once"},
		"a person's, too early": {"nodeshutdown", 2, false, Broken, "reports 2 volumes in use",
			"once it reports none: " + remove},
		"a person's, left":         {"nodeshutdown", 0, false, Broken, "still has the taint", remove},
		"a person's, still silent": {"nodeshutdown", 0, true, Broken, "its volumes detached", "then remove the taint"},
	} {
		c := healthy()
		n := &c.Nodes[0]
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: s.value,
			Effect: corev1.TaintEffectNoExecute}}
		n.Status.VolumesInUse = make([]corev1.UniqueVolumeName, s.inUse)
		if s.silent {
			c.silent(0)
		}
		f := c.Node("node-1")[0]
		if f.Verdict != s.want || !strings.Contains(f.Says, s.says) || !strings.Contains(f.Advice, s.advice) {
			t.Errorf("%s: got %+v", name, f)
		}
		if held := s.inUse > 0 && s.value == driver; held && strings.Contains(f.Advice, "kubectl taint") {
			t.Errorf("%s: it says how to undo that: %q", name, f.Advice)
		}
	}
}

// TestNothingIsTaintedTwice examines the pods on a silent node that is out of service already.
func TestNothingIsTaintedTwice(t *testing.T) {
	c := healthy()
	c.silent(0)
	c.web().DeletionTimestamp = ptr.To(metav1.Now())
	told := func() (says, advice string) {
		for _, f := range c.Pod("shop", "web") {
			says, advice = says+f.Says+"\n", advice+f.Advice+"\n"
		}
		return says, advice
	}
	if _, advice := told(); strings.Count(advice, "kubectl taint") != 2 {
		t.Errorf("before the taint the advice is %q, want it for the attachment and for the pod", advice)
	}
	c.Nodes[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: driver,
		Effect: corev1.TaintEffectNoExecute}}
	says, advice := told()
	if strings.Contains(advice, "kubectl taint") || strings.Contains(says, "six minutes") ||
		strings.Count(says, "is out of service") != 2 {
		t.Errorf("with the taint it says %q and advises %q", says, advice)
	}
}

// TestReleased explains each end of a PersistentVolume.
func TestReleased(t *testing.T) {
	for want, change := range map[string]func(v *corev1.PersistentVolume){
		"its policy is Retain": func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		},
		"has given the volume up": func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeFailed },
		"its claim is gone": func(v *corev1.PersistentVolume) { // A user has just released it.
			v.Spec.PersistentVolumeReclaimPolicy, v.Spec.ClaimRef = corev1.PersistentVolumeReclaimRetain, nil
		},
		"has the finalizers": func(_ *corev1.PersistentVolume) {},
	} {
		c := healthy()
		c.Attachments = nil
		v := &c.Volumes[0]
		v.Status.Phase = corev1.VolumeReleased
		change(v)
		if found := c.volumeState(v); len(found) != 1 || !strings.Contains(found[0].Says, want) {
			t.Errorf("got %+v, want %q", found, want)
		}
	}
}

// TestWrite prevents the text of a driver from forging lines.
func TestWrite(t *testing.T) {
	var out bytes.Buffer
	f := Finding{Object: "pod a/b", Verdict: Waiting, Says: "it waits", Proof: "one\n\x1b[2Jtwo", Advice: "nothing"}
	if err := Write(&out, []Finding{f, f}); err != nil {
		t.Fatal(err)
	}
	if want := "WAITING  pod a/b: it waits.\n         seen: one  [2Jtwo\n         do:   nothing\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
