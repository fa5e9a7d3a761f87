package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/nodeview"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

const (
	diskSize = "80740352" // in deployed/found-disks/disks.yaml
	diskFile = "/tmp/found-disk"
	fsFile   = "/tmp/found-filesystem"
	fsMount  = "/mnt/disks/found"
	canary   = "the canary of an earlier tenant"
)

// nodeStorages is the kind NodeStorage.
func nodeStorages() workload.Kind {
	return workload.Kind{Name: "NodeStorage", Resource: v1alpha1.GroupVersion().WithResource("nodestorages")}
}

// found is a node whose worker finds a disk and a filesystem.
type found struct{ *workload.Space }

// TestFoundDisks offers a disk and a filesystem and has a pod write to each. It kills the worker while the disk is
// wiped, and the masters while the filesystem is. Each is offered again, and no data of the first pod can be read. Then
// the test attempts everything that a worker must not be able to do.
func TestFoundDisks(t *testing.T) {
	f := found{cluster(t).NewSpace(t)}
	f.install()
	f.plug()
	t.Run("disk", func(t *testing.T) {
		f.cycle(t, "stowage-disks", use{
			mode:  workload.Block,
			mount: workload.Mount{Path: "/dev/disk", Device: true},
			write: "echo " + canary + " | dd of=/dev/disk bs=4096 seek=77 conv=sync,fsync && grep -q canary /dev/disk",
			read:  "! grep -q canary /dev/disk && cmp -n " + diskSize + " /dev/disk /dev/zero && echo clean",
			kill:  func() { f.kill("disks"); f.kill("worker") },
		})
	})
	t.Run("filesystem", func(t *testing.T) {
		f.cycle(t, "stowage-disks-filesystem", use{
			mode:  func(*corev1.PersistentVolumeClaimSpec) {},
			mount: workload.Mount{Path: "/data"},
			write: "mkdir -p /data/a/b && echo " + canary + " >/data/a/b/.canary && sync",
			read:  `test "$(ls -A /data | grep -v lost+found)" = "" && echo clean`,
			kill:  func() { f.kill("master") },
		})
	})
	t.Run("contained", f.contained)
}

// install applies the manifests, and removes them when the test ends.
func (f found) install() {
	f.T.Helper()
	_, err := f.Kubectl(f.Context(), "apply", "--kustomize", "deployed/found-disks")
	f.Must(err)
	workloads := []string{"deployment/stowage-disks-master", "daemonset/stowage-disks-worker", "daemonset/stowage-disks"}
	f.T.Cleanup(func() {
		ctx := context.Background()
		// A master that still runs would create the objects again that forget removes.
		args := append([]string{"delete", "--namespace=" + deployed.Namespace, "--ignore-not-found",
			"--cascade=foreground"}, workloads...)
		_, first := f.Kubectl(ctx, args...)
		_, second := f.Kubectl(ctx, "delete", "storageclass", "stowage-disks", "stowage-disks-filesystem")
		if err := errors.Join(first, second, f.forget(ctx)); err != nil {
			f.T.Error(err)
		}
	})
	for _, one := range workloads {
		if _, err := f.Kubectl(f.Context(), "rollout", "status", one, "--namespace="+deployed.Namespace,
			"--timeout=3m"); err != nil {
			pods, _ := f.Kubectl(f.Context(), "describe", "pods", "--namespace="+deployed.Namespace)
			f.T.Fatalf("%v\n%s", err, pods)
		}
	}
}

// forget removes the objects that masters and workers leave in the API when they are uninstalled while volumes still
// exist.
func (f found) forget(ctx context.Context) error {
	none := []byte(`{"metadata":{"finalizers":null}}`)
	var errs []error
	for kind, namespace := range map[workload.Kind]string{workload.Volumes(): "", nodeStorages(): deployed.Namespace} {
		objects := f.Dynamic.Resource(kind.Resource).Namespace(namespace)
		list, err := objects.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, o := range list.Items {
			if kind.Global && o.GetAnnotations()[v1alpha1.NodeStorageAnnotation] == "" {
				continue
			}
			_, err := objects.Patch(ctx, o.GetName(), types.MergePatchType, none, metav1.PatchOptions{})
			errs = append(errs, err, objects.Delete(ctx, o.GetName(), metav1.DeleteOptions{}))
		}
	}
	return errors.Join(errs...)
}

// plug gives the node a disk, and a filesystem that is mounted as an administrator would mount it.
func (f found) plug() {
	f.T.Helper()
	on := func(argv ...string) string {
		f.T.Helper()
		out, err := f.OnNode(f.Context(), argv...)
		f.Must(err)
		return out
	}
	f.T.Cleanup(func() {
		ctx := context.Background()
		_, _ = f.OnNode(ctx, "umount", fsMount) // The test may have failed earlier.
		for _, file := range []string{diskFile, fsFile} {
			loops, _ := f.OnNode(ctx, "losetup", "--noheadings", "--output", "NAME", "--associated", file)
			for _, loop := range strings.Fields(loops) {
				if _, err := f.OnNode(ctx, "losetup", "--detach", loop); err != nil {
					f.T.Error(err)
				}
			}
			_, _ = f.OnNode(ctx, "rm", "--force", file)
		}
	})
	on("truncate", "--size="+diskSize, diskFile)
	on("truncate", "--size=64M", fsFile)
	on("mkfs.ext4", "-q", fsFile)
	on("mkdir", "--parents", fsMount)
	on("mount", on("losetup", "--find", "--show", fsFile), fsMount)
	on("losetup", "--find", "--show", diskFile)
}

// use describes how pods use a volume.
type use struct {
	mode        func(*corev1.PersistentVolumeClaimSpec)
	mount       workload.Mount
	write, read string
	kill        func() // called while the volume is wiped
}

// cycle has two tenants use a volume of the class, one after the other.
func (f found) cycle(t *testing.T, class string, u use) {
	t.Helper()
	f.T = t
	first := f.offered(class, "")
	f.tenant(class, "first", first, u, u.write)
	f.Must(f.Client.CoreV1().PersistentVolumeClaims(f.Namespace).Delete(f.Context(), class+"-first",
		metav1.DeleteOptions{}))
	volume := v1alpha1.VolumeName(first.Annotations[v1alpha1.LocalVolumeAnnotation])
	caught := false // On a busy machine the deletion may be over before this test looks.
	f.storage("has a deletion of "+string(volume), func(s *v1alpha1.NodeStorage) bool {
		caught = slices.ContainsFunc(s.Spec.DeleteOperations,
			func(d v1alpha1.DeleteRequest) bool { return d.Volume == volume })
		return caught || !slices.ContainsFunc(s.Spec.Offers,
			func(o v1alpha1.VolumeOffer) bool { return o.PersistentVolume == first.Name })
	})
	u.kill()
	f.UntilGone(workload.Volumes(), first.Name)
	second := f.offered(class, first.Name)
	if again := second.Annotations[v1alpha1.LocalVolumeAnnotation]; again != string(volume) ||
		second.Spec.Local.Path != first.Spec.Local.Path {
		t.Errorf("%s at %s is offered after %s at %s", again, second.Spec.Local.Path, volume, first.Spec.Local.Path)
	}
	if out := f.tenant(class, "second", second, u, u.read); !strings.HasSuffix(out, "clean") {
		t.Errorf("the second tenant finds %q", out)
	}
	f.DeleteClaim(class + "-second")
	f.UntilGone(workload.Volumes(), second.Name)
	t.Logf("%s: %s, then %s; killed before the end of the wipe was told: %t", volume, first.Name, second.Name, caught)
}

// tenant runs a pod on a claim that must be bound to the volume, and returns the pod's output.
func (f found) tenant(class, name string, volume *corev1.PersistentVolume, u use, script string) string {
	f.T.Helper()
	claim := class + "-" + name
	f.MakeClaim(workload.Claim(claim, class, "16Mi", u.mode))
	u.mount.Claim = claim
	out := f.Run(workload.Pod(claim, script, []workload.Mount{u.mount}))
	bound := workload.Until(f.Space, workload.Claims(), claim, "is bound", func(c *corev1.PersistentVolumeClaim) bool {
		return c.Status.Phase == corev1.ClaimBound
	})
	if bound.Spec.VolumeName != volume.Name {
		f.T.Errorf("%s has %s, want %s", claim, bound.Spec.VolumeName, volume.Name)
	}
	return out
}

// offered waits until the class has one available volume with another name than other.
func (f found) offered(class, other string) (volume *corev1.PersistentVolume) {
	f.T.Helper()
	err := workload.Eventually(f.Context(), "a volume of the class "+class, func() error {
		list, err := f.Client.CoreV1().PersistentVolumes().List(f.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		volume = nil
		for i, v := range list.Items {
			if v.Spec.StorageClassName != class {
				continue
			}
			if volume != nil || v.Name == other || v.Status.Phase != corev1.VolumeAvailable {
				return fmt.Errorf("there is %s, %s", v.Name, v.Status.Phase)
			}
			volume = &list.Items[i]
		}
		if volume == nil {
			return errors.New("there is none")
		}
		return nil
	})
	if err != nil {
		f.T.Fatalf("%v\n%s", err, f.explain())
	}
	return volume
}

// storage waits until the node's NodeStorage satisfies done.
func (f found) storage(wanted string, done func(*v1alpha1.NodeStorage) bool) *v1alpha1.NodeStorage {
	f.T.Helper()
	s, err := workload.Await(f.Context(), f.Cluster, nodeStorages(), deployed.Namespace, f.Node, done)
	if err != nil {
		f.T.Fatalf("the NodeStorage of %s %s: %v\n%s", f.Node, wanted, err, f.explain())
	}
	return s
}

// explain returns the information that an operator would look at.
func (f found) explain() string {
	ctx, text := context.Background(), ""
	for _, args := range [][]string{
		{"get", "nodestorages", "--output=yaml"}, {"get", "pv"}, {"get", "events"},
		{"logs", "--selector=app.kubernetes.io/instance=stowage-disks", "--prefix", "--tail=40"},
	} {
		out, err := f.Kubectl(ctx, append(args, "--namespace="+deployed.Namespace)...)
		text += fmt.Sprintf("--- %s (%v)\n%s\n", strings.Join(args, " "), err, out)
	}
	return text
}

// kill kills the container of each pod of a component, and waits until each has started again.
func (f found) kill(name string) {
	f.T.Helper()
	f.Must(killContainers(f.Context(), f.Cluster, "app.kubernetes.io/instance=stowage-disks,app.kubernetes.io/component="+
		name, name))
}

// killContainers kills the named container in each selected pod, and waits until each has started again.
func killContainers(ctx context.Context, c *workload.Cluster, selector, name string) error {
	list, err := c.Client.CoreV1().Pods(deployed.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("there is no pod of %s", selector)
	}
	for _, pod := range list.Items {
		before := container(&pod, name)
		id := strings.TrimPrefix(before.ContainerID, "containerd://")
		if _, err := c.OnNode(ctx, nodeview.ContainerSignal(c.Cluster, id, "SIGKILL")...); err != nil {
			return err
		}
		_, err = workload.Await(ctx, c, workload.Pods(), deployed.Namespace, pod.Name, func(p *corev1.Pod) bool {
			now := container(p, name)
			return now.RestartCount > before.RestartCount && now.State.Running != nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
