package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// TestVolumeSet fills a set, binds claims to its volumes up to the maximum, and shrinks it step by step.
func TestVolumeSet(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	class := s.Class("pool", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	set := s.MakeSet(s.Set("pool", class, 2, 4))
	s.SetIs(set, "Filled", 2, 0)
	for i, after := range []struct {
		reason  string
		unbound int32
	}{{"Filled", 2}, {"Filled", 2}, {"MaximumReached", 1}, {"MaximumReached", 0}} {
		name := fmt.Sprintf("pooled-%d", i)
		bindsToReady(s, set, name, class)
		s.SetIs(set, after.reason, after.unbound, int32(i+1)) // It is small.
	}
	s.MakeClaim(workload.Claim("dynamic", class, "16Mi"))
	if volume := s.Bound("dynamic"); !strings.HasPrefix(volume.Name, "pvc-") {
		t.Errorf("at the maximum a claim has %s, not a volume of its own", volume.Name)
	}
	first := s.Bound("pooled-0").Name
	workload.Until(s, workload.Volumes(), first, "is bound, and needs no manager", func(v *corev1.PersistentVolume) bool {
		return !slices.Contains(v.Finalizers, v1alpha1.VolumeSetFinalizer)
	})
	s.DeleteClaim("pooled-0")
	s.UntilGone(workload.Volumes(), first)
	s.SetIs(set, "MaximumReached", 1, 3)
	refusesClones(s, set, class)
	deletedByHand(s, set)
	shrinks(s, set)
}

// TestVolumeSetAttributes keeps volumes ready with their own attributes and mount options. A claim with their
// VolumeAttributesClass binds to one, another claim does not, and a pod finds both applied.
func TestVolumeSetAttributes(t *testing.T) {
	t.Parallel()
	const attributes = "stowage-local-sequential"
	s := cluster(t).NewSpace(t)
	class := s.Class("pool", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	set := s.MakeSet(s.Set("pool", class, 1, 2, func(set *v1alpha1.PersistentVolumeSet) {
		set.Spec.Template.Spec.VolumeAttributesClassName = attributes
		set.Spec.Template.Spec.MountOptions = []string{"noatime"}
	}))
	s.SetIs(set, "Filled", 1, 0)
	s.MakeClaim(workload.Claim("plain", class, "16Mi"))
	if volume := s.Bound("plain"); !strings.HasPrefix(volume.Name, "pvc-") {
		t.Errorf("a claim without the class of attributes has %s", volume.Name)
	}
	s.MakeClaim(workload.Claim("data", class, "16Mi", func(spec *corev1.PersistentVolumeClaimSpec) {
		spec.VolumeAttributesClassName = ptr.To(attributes)
	}))
	if volume := s.Bound("data"); s.SetVolumes(set)[volume.Name].Name == "" {
		t.Errorf("a claim of the set's classes has %s", volume.Name)
	}
	out := s.Run(workload.Pod("user", "grep ' /data ' /proc/mounts | grep -o noatime; "+readAhead, workload.At("data")))
	if out != "noatime\n4096" {
		t.Errorf("the pod says:\n%s", out)
	}
}

// TestVolumeSetMoved gives the template of a set another class. While an unbound volume is left in the first class, no
// clone is created there.
func TestVolumeSetMoved(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	image := map[string]string{"pool": "image"}
	first := s.Class("first", image, corev1.PersistentVolumeReclaimDelete)
	second := s.Class("second", image, corev1.PersistentVolumeReclaimDelete)
	set := s.MakeSet(s.Set("moved", first, 1, 3, func(set *v1alpha1.PersistentVolumeSet) {
		set.Spec.Template.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}))
	s.SetIs(set, "Filled", 1, 0)
	left := unbound(s, set).Name
	s.ChangeSet(set, fmt.Sprintf(`{"spec":{"template":{"spec":{"storageClassName":%q,`+
		`"persistentVolumeReclaimPolicy":"Delete"}}}}`, second))
	refusesClones(s, set, first)
	s.MakeClaim(workload.Claim("dynamic", first, "16Mi", workload.Named(left)))
	s.Bound("dynamic")
	workload.Until(s, workload.Sets(), set, "names its first class no more", func(set *v1alpha1.PersistentVolumeSet) bool {
		return !slices.Contains(set.Status.Classes, first)
	})
	s.ChangeVolume(left, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	s.DeleteClaim("dynamic")
	s.UntilGone(workload.Volumes(), left)
	s.DeleteSet(set)
}

// refusesClones requests clones in the class of a set, in each way that a claim can get a class.
func refusesClones(s *workload.Space, set, class string) {
	s.T.Helper()
	claims, clone := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace), workload.FromClaim("dynamic")
	refused := func(way string, err error) {
		s.T.Helper()
		if err == nil || !strings.Contains(err.Error(), "would be bound to an empty volume of the PersistentVolumeSet "+set) {
			s.T.Errorf("a clone with the class of a set %s: %v", way, err)
		}
	}
	_, err := claims.Create(s.T.Context(), workload.Claim("clone", class, "16Mi", clone), metav1.CreateOptions{})
	refused("in its field", err)
	noted := workload.Claim("clone", class, "16Mi", clone)
	noted.Spec.StorageClassName, noted.Annotations = nil, map[string]string{corev1.BetaStorageClassAnnotation: class}
	_, err = claims.Create(s.T.Context(), noted, metav1.CreateOptions{})
	refused("in the annotation", err)
	late := workload.Claim("clone", class, "16Mi", clone)
	late.Spec.StorageClassName = nil
	late, err = claims.Create(s.T.Context(), late, metav1.CreateOptions{})
	s.Must(err)
	text := fmt.Sprintf(`{"spec":{"storageClassName":%q}}`, class)
	_, err = claims.Patch(s.T.Context(), late.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	refused("by an update, as a default class comes", err)
	s.DeleteClaim(late.Name)
}

// bindsToReady creates a claim, which must be bound to one of the set's volumes: one that existed before the claim, or,
// when Kubernetes' controller and the manager choose at the same moment, the volume that replaced the first choice.
func bindsToReady(s *workload.Space, set, name, class string) {
	s.T.Helper()
	ready := s.SetVolumes(set)
	s.MakeClaim(workload.Claim(name, class, "16Mi"))
	volume := s.Bound(name)
	switch before, there := ready[volume.Name]; {
	case there && before.Spec.ClaimRef != nil:
		s.T.Errorf("%s is bound to %s, which another claim had", name, volume.Name)
	case there:
	case s.SetVolumes(set)[volume.Name].Name == "":
		s.T.Errorf("%s is bound to %s, which is not of the set: %q", name, volume.Name, slices.Sorted(maps.Keys(ready)))
	default:
		s.T.Logf("%s is bound to %s, which came after it", name, volume.Name)
	}
}

// unbound returns a volume of the set that has no claim.
func unbound(s *workload.Space, set string) corev1.PersistentVolume {
	s.T.Helper()
	for _, volume := range s.SetVolumes(set) {
		if volume.Spec.ClaimRef == nil && volume.DeletionTimestamp == nil {
			return volume
		}
	}
	s.T.Fatalf("the set %s has no unbound volume", set)
	return corev1.PersistentVolume{}
}

// deletedByHand deletes an unbound PersistentVolume. Its volume is deleted too, and another is created.
func deletedByHand(s *workload.Space, set string) {
	s.T.Helper()
	volume := unbound(s, set)
	s.Must(s.Client.CoreV1().PersistentVolumes().Delete(s.Context(), volume.Name, metav1.DeleteOptions{}))
	s.UntilGone(workload.Volumes(), volume.Name)
	view, err := s.Look(s.Context())
	s.Must(err)
	if left := view.Of(volume.Spec.CSI.VolumeHandle); len(left) > 0 {
		s.T.Errorf("the PersistentVolume is gone, and the node has %q", left)
	}
	s.SetIs(set, "MaximumReached", 1, 3)
}

// shrinks lowers the maximum of a set with three bound volumes and an unbound one, then deletes the set.
func shrinks(s *workload.Space, set string) {
	s.T.Helper()
	bound := func() (names []string) {
		for name, volume := range s.SetVolumes(set) {
			if volume.Status.Phase == corev1.VolumeBound && volume.DeletionTimestamp == nil {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	before, spare := bound(), unbound(s, set).Name
	s.ChangeSet(set, `{"spec":{"minimumReplicas":1,"maximumReplicas":1}}`)
	s.UntilGone(workload.Volumes(), spare)
	s.SetIs(set, "MaximumReached", 0, 3)
	s.ChangeSet(set, `{"spec":{"maximumReplicas":9}}`)
	s.SetIs(set, "Filled", 1, 3)
	spare = unbound(s, set).Name
	s.DeleteSet(set)
	s.UntilGone(workload.Volumes(), spare)
	if after := bound(); len(before) != 3 || !slices.Equal(before, after) {
		s.T.Errorf("bound were %q, and are %q", before, after)
	}
}

// TestVolumeSetExample applies the example of docs/guides/volume-sets.md, whose class waits for a pod. The test runs
// alone, because claims of other tests use this class.
func TestVolumeSetExample(t *testing.T) {
	s := cluster(t).NewSpace(t)
	folder := filepath.Join(tree, "deploy/kubernetes/examples/volume-sets")
	kubectl := func(args ...string) {
		t.Helper()
		_, err := s.Kubectl(context.WithoutCancel(t.Context()), append(args, "--kustomize", folder)...)
		s.Must(err)
	}
	kubectl("apply")
	s.SetIs("stowage-local-1gi", "Filled", 2, 0)
	s.MakeClaim(workload.Claim("data", ext4, "1Gi"))
	s.Run(workload.Pod("writer", writes+checks, workload.At("data")))
	volume := s.Bound("data")
	if volume.Labels["pool"] != "stowage-local-1gi" {
		t.Errorf("the pod has %s, not a volume of the set", volume.Name)
	}
	s.SetIs("stowage-local-1gi", "Filled", 2, 1)
	kubectl("delete")
	s.UntilGone(workload.Sets(), "stowage-local-1gi")
	s.Run(workload.Pod("reader", checks, workload.At("data")))
}

// TestVolumeSetRefused creates sets that are invalid or cannot be filled. Each reports the reason, and none leaves
// anything behind.
func TestVolumeSetRefused(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	class := s.Class("refusing", map[string]string{"pool": "nowhere"}, corev1.PersistentVolumeReclaimDelete)
	for sentence, change := range map[string]func(*v1alpha1.PersistentVolumeSet){
		"minimumReplicas must not be greater than maximumReplicas": func(set *v1alpha1.PersistentVolumeSet) {
			set.Spec.MinimumReplicas = 9
		},
		"or the set would not count the volumes that it creates": func(set *v1alpha1.PersistentVolumeSet) {
			set.Spec.Template.Metadata.Labels = nil
		},
		"spec.selector in body should have at least 1 properties": func(set *v1alpha1.PersistentVolumeSet) {
			set.Spec.Selector = map[string]v1alpha1.LabelValue{}
		},
		"spec.template.spec.volumeMode: Unsupported value: \"Tape\"": func(set *v1alpha1.PersistentVolumeSet) {
			set.Spec.Template.Spec.VolumeMode = "Tape"
		},
	} {
		if err := s.TryMakeSet(s.Set("invalid", class, 1, 2, change)); err == nil ||
			!strings.Contains(err.Error(), sentence) {
			t.Errorf("the refusal is %v, want %q", err, sentence)
		}
	}
	refused := s.MakeSet(s.Set("refused", class, 2, 4))
	saysOf(s, refused, "CreationFailed", `"nowhere"`)
	label := s.MakeSet(s.Set("label", class, 1, 2, func(set *v1alpha1.PersistentVolumeSet) {
		labels := maps.Clone(set.Spec.Template.Metadata.Labels)
		labels["not a key"] = "x"
		set.Spec.Template.Metadata.Labels = labels
	}))
	saysOf(s, label, "TemplateRefused", "not a key")
	early := s.MakeSet(s.Set("early", s.Namespace+"-late", 1, 2))
	saysOf(s, early, "StorageClassNotFound", "-late")
	s.Class("late", map[string]string{"pool": "directory"}, corev1.PersistentVolumeReclaimDelete)
	s.SetIs(early, "Filled", 1, 0)
	if left := len(s.SetVolumes(refused)) + len(s.SetVolumes(label)); left > 0 {
		t.Errorf("%d PersistentVolumes are there of sets that could create none", left)
	}
}

// saysOf waits until a set has no slots and its condition contains the words.
func saysOf(s *workload.Space, name, reason, words string) {
	s.T.Helper()
	workload.Until(s, workload.Sets(), name, "says "+words, func(set *v1alpha1.PersistentVolumeSet) bool {
		return len(set.Status.Conditions) == 1 && set.Status.Conditions[0].Reason == reason &&
			strings.Contains(set.Status.Conditions[0].Message, words) && len(set.Status.Slots) == 0
	})
}

// TestVolumeSetKilled kills the manager again and again while claims come and go. There are never more volumes than the
// maximum. At the end, volumes and PersistentVolumes match one to one.
func TestVolumeSetKilled(t *testing.T) {
	s := cluster(t).NewSpace(t)
	t.Logf("to repeat the plan, -seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	class := s.Class("killed", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	const maximum = 6
	set := s.MakeSet(s.Set("killed", class, 4, maximum))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var most atomic.Int64
	go s.WatchSet(ctx, set, func(total int) { most.Store(max(most.Load(), int64(total))) })
	series := &series{s: s, class: class, random: random}
	killed := make(chan error, 1)
	go func() { killed <- killManager(t.Context(), s.Cluster, rand.New(rand.NewPCG(*seed, 1))) }()
	for done := false; !done; {
		series.step()
		select {
		case err := <-killed:
			s.Must(err)
			done = true
		case <-time.After(time.Duration(random.IntN(700)) * time.Millisecond):
		}
	}
	for _, name := range series.there {
		s.Bound(name)
		s.DeleteClaim(name)
	}
	s.SetIs(set, "Filled", 4, 0)
	s.Must(workload.Eventually(t.Context(), "as many volumes as PersistentVolumes",
		func() error { return sameOnNode(s, set) }))
	switch most := most.Load(); {
	case most > maximum:
		t.Errorf("VIOLATION: %d volumes were there at a time, and the set's maximum is %d", most, maximum)
	case most < 4:
		t.Errorf("up to %d volumes were there at a time: too few to exceed the set's maximum of %d", most, maximum)
	}
	t.Logf("%d claims were made; up to %d volumes of the set were there", series.made, most.Load())
}

// killManager kills the manager's process, and its pod, at random moments.
func killManager(ctx context.Context, c *workload.Cluster, random *rand.Rand) error {
	for range *kills {
		for _, kill := range []func() error{
			func() error { return endContainer(ctx, c, deployed.Manager) },
			func() error { return replaceDriverAtOnce(ctx, c) },
		} {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(random.IntN(3000)) * time.Millisecond):
			}
			if err := kill(); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameOnNode compares the volumes on the node with the PersistentVolumes of the set, while no other test has any.
func sameOnNode(s *workload.Space, set string) error {
	view, err := s.Look(s.Context())
	if err != nil {
		return err
	}
	var handles []string
	for _, volume := range s.SetVolumes(set) {
		handles = append(handles, volume.Spec.CSI.VolumeHandle)
	}
	slices.Sort(handles)
	if !slices.Equal(handles, view.Handles()) {
		return fmt.Errorf("there are the PersistentVolumes of\n%s\nand on the node\n%s", strings.Join(handles, "\n"),
			strings.Join(view.Entries, "\n"))
	}
	return nil
}
