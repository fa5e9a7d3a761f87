package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// drifted kills the attaching components in the middle of their work, and deletes their state. Each time, the cloud and
// Kubernetes agree again, or the operator is told what to do, and the pod returns to the remaining node with its data.
func (s *scene) drifted() {
	s.killedWhileAttaching()
	s.podGoneMeanwhile()
	s.attachmentForgotten()
	s.volumeForgotten()
	s.neverTwice()
}

// kill kills or stops processes of the cluster, wherever they run. They are started again.
func (s *scene) kill(signal string, names ...string) {
	s.Helper()
	for _, name := range names {
		if out, err := s.ControlPlaneCommand(s.Context(), "pkill", "-"+signal, "-x", name).CombinedOutput(); err != nil {
			s.Fatalf("send %s to %s: %v: %s", signal, name, err, out)
		}
	}
}

// attachers are the components that attach volumes, by the first 15 characters of their names.
func attachers() []string { return []string{"kube-controller", "csi-attacher"} }

// killedWhileAttaching kills the attachers and the driver's controller after the cloud has started to attach the
// volume.
func (s *scene) killedWhileAttaching() {
	s.cloud.Server.Stick("attaching", true)
	s.kubectl("cordon", lost)
	s.kubectl("delete", "pod", "web-0")
	s.on("the volume is being attached", region.NodeA)
	s.kill("KILL", append(attachers(), "stowage")...)
	// Stimulus: the restarted components ask for the same attachment, and the cloud has not finished it.
	<-time.After(15 * time.Second)
	s.on("the volume is still being attached", region.NodeA)
	s.cloud.Server.Stick("attaching", false)
	begin := time.Now()
	s.eventually("the pod runs", 2*patience,
		func(context.Context) error { return s.says(kept, "/data/file: OK\nlives 2") })
	s.passed("the pod runs after those who attach were killed", begin)
}

// podGoneMeanwhile ends the pod while no component attaches or detaches.
func (s *scene) podGoneMeanwhile() {
	s.without(func() {
		s.on("the volume is attached", region.NodeA)
		s.kill("KILL", attachers()...)
		begin := time.Now()
		s.on("the volume is detached")
		s.passed("the volume of a pod that finished is detached", begin)
	})
	s.eventually("the pod runs", patience, func(context.Context) error { return s.says(kept, "/data/file: OK\nlives 3") })
}

// without ends the pod and calls do while the attachers are stopped. The pod is started again afterwards.
func (s *scene) without(do func()) {
	s.kill("STOP", attachers()...)
	s.kubectl("scale", "statefulset/web", "--replicas=0")
	s.kubectl("delete", "pod", "web-0")
	s.eventually("the kubelet has let go", patience, func(ctx context.Context) error {
		node, err := s.Client.CoreV1().Nodes().Get(ctx, kept, metav1.GetOptions{})
		if err == nil && len(node.Status.VolumesInUse) > 0 {
			err = fmt.Errorf("it reports in use: %q", node.Status.VolumesInUse)
		}
		return err
	})
	do()
	s.kubectl("scale", "statefulset/web", "--replicas=1")
}

// attachmentForgotten deletes the VolumeAttachment of an attached volume, so that Kubernetes has no record of it.
func (s *scene) attachmentForgotten() {
	on := s.attached()
	s.without(func() {
		for _, name := range s.attachments() {
			s.kubectl("delete", "volumeattachment", name, "--wait=false")
			s.kubectl("patch", "volumeattachment", name, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
		}
		begin := time.Now()
		s.kill("KILL", attachers()...)
		s.on("the volume is detached")
		s.passed(fmt.Sprintf("an attachment to %q that nobody knew is gone", on), begin)
	})
	s.eventually("the pod runs", patience, func(context.Context) error { return s.says(kept, "/data/file: OK\nlives 4") })
}

// volumeForgotten deletes a PersistentVolume by force while its volume is attached. An event of its VolumeAttachment
// reports this. After the PersistentVolume is created again with the same name and volume, as the guide says,
// csi-attacher detaches the volume.
func (s *scene) volumeForgotten() {
	name := s.kubectl("get", "pvc", "data-web-0", "-o", "jsonpath={.spec.volumeName}")
	saved := s.saved(name)
	s.kubectl("delete", "pv", name, "--wait=false")
	s.kubectl("patch", "pv", name, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
	begin := time.Now()
	attachment := s.attachments()[0]
	s.eventually("the VolumeAttachment tells of it", patience, func(ctx context.Context) error {
		list, err := s.Client.CoreV1().Events("default").List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=" + attachment + ",reason=AttachedWithoutPersistentVolume"})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("it has no event of it")
		}
		return err
	})
	s.passed("a VolumeAttachment without a PersistentVolume is told of", begin)
	s.kubectl("scale", "statefulset/web", "--replicas=0")
	s.kubectl("wait", "pod/web-0", "--for=delete", "--timeout=4m")
	s.kubectl("apply", "--filename", saved)
	begin = time.Now()
	s.on("the volume is detached")
	s.passed("the volume is detached by a new PersistentVolume", begin)
	s.kubectl("scale", "statefulset/web", "--replicas=1")
	s.eventually("the pod runs", patience, func(context.Context) error { return s.says(kept, "/data/file: OK\nlives 5") })
}

// saved writes a PersistentVolume to a file, as a backup contains it.
func (s *scene) saved(name string) (path string) {
	var volume unstructured.Unstructured
	s.must(json.Unmarshal([]byte(s.kubectl("get", "pv", name, "-o", "json")), &volume.Object))
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		unstructured.RemoveNestedField(volume.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(volume.Object, "status")
	text, err := volume.MarshalJSON()
	s.must(err)
	path = filepath.Join(s.TempDir(), "volume.json")
	s.must(os.WriteFile(path, text, 0o600))
	return path
}

// on waits until the volume is attached, or being attached, to exactly these machines.
func (s *scene) on(what string, machines ...string) {
	s.Helper()
	s.eventually(what, 2*patience, func(context.Context) error { // Every component retries with growing delays.
		if have := s.attached(); !slices.Equal(have, machines) {
			return fmt.Errorf("it is attached to %q", have)
		}
		return nil
	})
}

// attachments returns the names of the driver's VolumeAttachments.
func (s *scene) attachments() (names []string) {
	list, err := s.Client.StorageV1().VolumeAttachments().List(s.Context(), metav1.ListOptions{})
	s.must(err)
	for _, a := range list.Items {
		if a.Spec.Attacher == driver {
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		s.Fatal("there is no VolumeAttachment of the driver")
	}
	return names
}
