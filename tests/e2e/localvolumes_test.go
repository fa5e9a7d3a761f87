package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// localNodes selects the pods that run a node's driver and worker.
const localNodes = "app.kubernetes.io/instance=stowage-local,app.kubernetes.io/component=node"

// localVolumes is the kind LocalVolume.
func localVolumes() workload.Kind {
	return workload.Kind{Name: "LocalVolume", Resource: v1alpha1.GroupVersion().WithResource("localvolumes")}
}

// TestLocalVolumes replaces the standalone driver with the cluster's master and workers. Pods use the volumes that
// these create. Killing all of them loses no data and leaves nothing behind. A worker's token can write only the status
// of its own node.
func TestLocalVolumes(t *testing.T) {
	f := found{cluster(t).NewSpace(t)}
	f.installVolumes()
	t.Run("use", func(t *testing.T) {
		for _, class := range []string{ext4, xfs, directory} {
			t.Run(class, func(t *testing.T) { usedAndGrown(cluster(t).NewSpace(t), class) })
		}
		t.Run("device", func(t *testing.T) { usedAsDevice(cluster(t).NewSpace(t)) })
		t.Run("modified", func(t *testing.T) { modified(cluster(t).NewSpace(t)) })
		t.Run("copies", func(t *testing.T) { copied(cluster(t).NewSpace(t)) })
		t.Run("groups", func(t *testing.T) { grouped(cluster(t).NewSpace(t)) })
	})
	t.Run("killed", func(t *testing.T) { fleetKilled(t) })
	t.Run("contained", func(t *testing.T) { found{cluster(t).NewSpace(t)}.volumesContained(t) })
}

// installVolumes applies the manifests until the test ends. The standalone driver is removed, and restored afterwards.
func (f found) installVolumes() {
	f.T.Helper()
	standalone := "statefulset/" + deployed.StatefulSet
	workloads := []string{"deployment/stowage-disks-master", "daemonset/stowage-disks-worker", "daemonset/stowage-disks",
		"daemonset/stowage-local-node"}
	in := "--namespace=" + deployed.Namespace
	kubectl := func(ctx context.Context, args ...string) error {
		_, err := f.Kubectl(ctx, append(args, in)...)
		return err
	}
	f.T.Cleanup(func() {
		ctx := context.Background()
		err := errors.Join(
			kubectl(ctx, append([]string{"delete", "--ignore-not-found"}, workloads...)...),
			kubectl(ctx, "wait", "pods", "--for=delete", "--selector="+localNodes, "--timeout=3m"),
			f.forget(ctx),
			kubectl(ctx, "delete", "csistoragecapacities", "--all"),
			kubectl(ctx, "scale", standalone, "--replicas=1"),
			kubectl(ctx, "rollout", "status", standalone, "--timeout=3m"),
		)
		if err != nil {
			f.T.Error(err)
		}
	})
	f.Must(kubectl(f.Context(), "scale", standalone, "--replicas=0"))
	f.Must(kubectl(f.Context(), "wait", "pod/"+deployed.Pod, "--for=delete", "--timeout=3m"))
	// They belong to the StatefulSet, and would be deleted with it.
	f.Must(kubectl(f.Context(), "delete", "csistoragecapacities", "--all"))
	_, err := f.Kubectl(f.Context(), "apply", "--kustomize", "deployed/local-volumes")
	f.Must(err)
	for _, one := range workloads {
		if err := kubectl(f.Context(), "rollout", "status", one, "--timeout=3m"); err != nil {
			pods, _ := f.Kubectl(f.Context(), "describe", "pods", in)
			f.T.Fatalf("%v\n%s", err, pods)
		}
	}
	f.storage("has pools", func(s *v1alpha1.NodeStorage) bool { return len(s.Status.Pools) == 2 })
}

// usedAndGrown has two pods use a volume, grows it, and checks that nothing is left of it.
func usedAndGrown(s *workload.Space, class string) {
	s.T.Helper()
	claim := s.MakeClaim(workload.Claim("data", class, "400Mi"))
	s.Run(workload.Pod("writer", writes, workload.At("data")))
	volume := s.Bound("data")
	asProposed(s.T, volume, claim)
	o := localVolume(s, volume, "is ready", func(o *v1alpha1.LocalVolume) bool {
		return o.Status.State == v1alpha1.StateReady
	})
	if o.Spec.Node != s.Node || o.Spec.VolumeName != volume.Name {
		s.T.Errorf("the LocalVolume of %s on %s is %+v", volume.Name, s.Node, o.Spec)
	}
	ask(s, "data", "900Mi")
	localVolume(s, volume, "has grown", func(o *v1alpha1.LocalVolume) bool {
		return o.Status.Capacity.Bytes() >= 900<<20
	})
	out := s.Run(workload.Pod("reader", checks, workload.At("data")))
	if !strings.Contains(out, "/data/file: OK") {
		s.T.Errorf("the second pod says %q", out)
	}
	grown(s, "data", "900Mi")
	s.DeleteClaim("data")
	s.UntilGone(workload.Volumes(), volume.Name)
	s.Must(s.AwaitGone(s.Context(), localVolumes(), deployed.Namespace, volume.Spec.CSI.VolumeHandle))
}

// usedAsDevice has two pods use a volume as a device.
func usedAsDevice(s *workload.Space) {
	s.T.Helper()
	s.MakeClaim(workload.Claim("disk", ext4, "16Mi", workload.Block))
	at := []workload.Mount{{Claim: "disk", Path: "/dev/disk", Device: true}}
	s.Run(workload.Pod("writer", "echo "+canary+" | dd of=/dev/disk bs=4096 seek=77 conv=sync,fsync", at))
	if out := s.Run(workload.Pod("reader", "grep -c canary /dev/disk", at)); out != "1" {
		s.T.Errorf("the second pod says %q", out)
	}
}

// copied takes a snapshot while a pod writes, restores it, and clones the volume. All copies are on the volume's node,
// and nothing is left of them.
func copied(s *workload.Space) {
	s.T.Helper()
	s.MakeClaim(workload.Claim("data", ext4, "64Mi"))
	s.Start(workload.Pod("writer", writes+"echo written; while true; do date >> /data/log; sync; sleep 0.05; done",
		workload.At("data")))
	written(s, "writer")
	s.Snapshot("point", "stowage-local", "data")
	s.Exec("writer", "sh", "-c", "echo changed > /data/file; sync")
	s.MakeClaim(workload.Claim("restored", ext4, "96Mi", workload.FromSnapshot("point")))
	s.MakeClaim(workload.Claim("cloned", ext4, "64Mi", workload.FromClaim("data")))
	if out := s.Run(workload.Pod("reader", checks, workload.At("restored"))); out != "/data/file: OK" {
		s.T.Errorf("the pod with the restored snapshot says:\n%s", out)
	}
	if out := s.Run(workload.Pod("twin", "cat /data/file", workload.At("cloned"))); out != "changed" {
		s.T.Errorf("the pod with the clone says:\n%s", out)
	}
	s.DeleteSnapshot("point")
	noneLeft(s, "localsnapshots")
}

// noneLeft waits until no object of a type is left. An object ends shortly after its volume or snapshot on the node:
// the worker first reports the deletion to the master.
func noneLeft(s *workload.Space, resource string) {
	s.T.Helper()
	orders := s.Dynamic.Resource(v1alpha1.GroupVersion().WithResource(resource)).Namespace(deployed.Namespace)
	s.Must(workload.Eventually(s.Context(), "the end of all "+resource, func() error {
		list, err := orders.List(s.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, o := range list.Items {
			err = errors.Join(err, fmt.Errorf("%s is left", o.GetName()))
		}
		return err
	}))
}

// grouped takes a group snapshot of two volumes while a pod writes the same data to both, one after the other. In the
// restored volumes, the second is never ahead of the first.
func grouped(s *workload.Space) {
	s.T.Helper()
	for _, name := range []string{"first", "second"} {
		s.MakeClaim(workload.Claim(name, ext4, "64Mi"))
		s.ChangeClaim(name, `{"metadata":{"labels":{"`+workload.GroupLabel+`":"both"}}}`)
	}
	s.Start(workload.Pod("writer", "echo first > /first/name; echo second > /second/name; sync; echo written; n=0; "+
		"while true; do n=$((n+1)); for d in first second; do echo $n > /$d/n; sync; done; sleep 0.05; done",
		[]workload.Mount{{Claim: "first", Path: "/first"}, {Claim: "second", Path: "/second"}}))
	written(s, "writer")
	members := s.Group("both", "stowage-local", 2)
	counts := map[string]int{}
	for i, member := range members {
		name := "restored-" + strconv.Itoa(i)
		s.MakeClaim(workload.Claim(name, ext4, "64Mi", workload.FromSnapshot(member)))
		said := strings.Fields(s.Run(workload.Pod(name, "cat /data/name /data/n", workload.At(name))))
		if len(said) != 2 {
			s.T.Fatalf("a restored volume has %q", said)
		}
		count, err := strconv.Atoi(said[1])
		s.Must(err)
		counts[said[0]] = count
	}
	if first, second := counts["first"], counts["second"]; len(counts) != 2 || first != second && first != second+1 {
		s.T.Errorf("the counts at one instant are %v", counts)
	}
	s.DeleteGroup("both", members)
	noneLeft(s, "localsnapshotgroups")
}

// localVolume waits until the LocalVolume of a PersistentVolume satisfies done.
func localVolume(s *workload.Space, volume *corev1.PersistentVolume, wanted string,
	done func(*v1alpha1.LocalVolume) bool) *v1alpha1.LocalVolume {
	s.T.Helper()
	handle := volume.Spec.CSI.VolumeHandle
	o, err := workload.Await(s.Context(), s.Cluster, localVolumes(), deployed.Namespace, handle, done)
	if err != nil {
		s.T.Fatalf("the LocalVolume of %s %s: %v\n%s", volume.Name, wanted, err, found{s}.explain())
	}
	return o
}

// fleetKilled kills masters, workers and drivers at random moments while claims come and go.
func fleetKilled(t *testing.T) {
	s := cluster(t).NewSpace(t)
	t.Logf("to repeat the plan, -seed %d", *seed)
	series := &series{s: s, class: s.Class("image", map[string]string{"pool": "image"},
		corev1.PersistentVolumeReclaimDelete), random: rand.New(rand.NewPCG(*seed, 0))}
	killed := make(chan error, 1)
	go func() { killed <- killFleet(t.Context(), s.Cluster, rand.New(rand.NewPCG(*seed, 1))) }()
	series.until(killed)
	series.settle()
	noneLeft(s, localVolumes().Resource.Resource)
	t.Logf("%d claims were made, %d of them deleted in the meantime", series.made, series.made-len(series.there))
}

func killFleet(ctx context.Context, c *workload.Cluster, random *rand.Rand) error {
	const masters = "app.kubernetes.io/instance=stowage-disks,app.kubernetes.io/component=master"
	for range (*kills + 1) / 2 { // Each takes twice as long as the standalone driver, because there are more of them.
		for _, victim := range [][2]string{{localNodes, "worker"}, {localNodes, "stowage"}, {masters, "master"}} {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(random.IntN(2000)) * time.Millisecond):
			}
			if err := killContainers(ctx, c, victim[0], victim[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// volumesContained uses the token of the node's worker for the attempts that a compromised worker could make.
func (f found) volumesContained(t *testing.T) {
	f.T = t
	f.MakeClaim(workload.Claim("data", f.Class("image", map[string]string{"pool": "image"},
		corev1.PersistentVolumeReclaimDelete), "16Mi"))
	own := f.Bound("data").Spec.CSI.VolumeHandle
	pods, err := f.Client.CoreV1().Pods(deployed.Namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: localNodes})
	f.Must(err)
	token, err := f.Kubectl(t.Context(), "exec", "--namespace="+deployed.Namespace, pods.Items[0].Name,
		"--container=worker", "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
	f.Must(err)
	f.another()
	h := thief{f, t, f.with(token)}
	patch := func(kind workload.Kind, name, patch string, sub ...string) func() error {
		return func() error {
			_, err := h.api.Resource(kind.Resource).Namespace(deployed.Namespace).Patch(t.Context(), name,
				types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
			return err
		}
	}
	for name, attempt := range map[string]func() error{
		"the spec of its volume":      patch(localVolumes(), own, `{"spec":{"delete":true}}`),
		"the finalizer of its volume": patch(localVolumes(), own, `{"metadata":{"finalizers":null}}`),
		"a patch of its status":       patch(localVolumes(), own, `{"status":{"state":"Deleted"}}`, "status"),
		"a volume of its own": h.create("localvolumes", "LocalVolume", "stowage.dev/v1alpha1", deployed.Namespace,
			"lv-stolen"),
		"a snapshot of its own": h.create("localsnapshots", "LocalSnapshot", "stowage.dev/v1alpha1", deployed.Namespace,
			"ls-stolen"),
		"a group of its own": h.create("localsnapshotgroups", "LocalSnapshotGroup", "stowage.dev/v1alpha1",
			deployed.Namespace, "lg-stolen"),
		"removing volumes":           h.delete("localvolumes", "stowage.dev/v1alpha1", deployed.Namespace),
		"another node's pools":       func() error { return h.writeStatus(otherNode, nil) },
		"the spec of its node":       patch(nodeStorages(), h.Node, `{"spec":{"offers":null}}`),
		"a PersistentVolume":         h.create("persistentvolumes", "PersistentVolume", "v1", "", "stolen"),
		"removing PersistentVolumes": h.delete("persistentvolumes", "v1", ""),
		"a claim": h.create("persistentvolumeclaims", "PersistentVolumeClaim", "v1",
			h.Namespace, "stolen"),
		"secrets":                     h.list("secrets", "v1", deployed.Namespace),
		"LocalVolumes of the cluster": h.list("localvolumes", "stowage.dev/v1alpha1", ""),
		"the masters' token": h.create("serviceaccounts", "TokenRequest", "authentication.k8s.io/v1",
			deployed.Namespace, "stowage-disks-master", "token"),
		"the policy that contains it": h.delete("validatingadmissionpolicybindings",
			"admissionregistration.k8s.io/v1", ""),
		"the room that others publish": h.list("csistoragecapacities", "storage.k8s.io/v1", deployed.Namespace),
		"the masters' lease": h.patch("leases", "coordination.k8s.io/v1", deployed.Namespace,
			"stowage-disks-master", `{"spec":{"holderIdentity":"x"}}`),
	} {
		h.refused(name, attempt)
	}
}
