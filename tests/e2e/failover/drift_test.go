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

// drifted ends what attaches in the middle of its work, and takes away what it knows. The cloud and Kubernetes agree
// again each time, or the operator is told what to do, and the pod comes back to the node that stays with its data.
func (s *scene) drifted() {
	s.killedWhileAttaching()
	s.podGoneMeanwhile()
	s.attachmentForgotten()
	s.volumeForgotten()
	s.neverTwice()
}

// kill ends processes of the cluster, wherever they run, or stops them. They are started again.
func (s *scene) kill(signal string, names ...string) {
	s.Helper()
	for _, name := range names {
		if out, err := s.ControlPlaneCommand(s.Context(), "pkill", "-"+signal, "-x", name).CombinedOutput(); err != nil {
			s.Fatalf("send %s to %s: %v: %s", signal, name, err, out)
		}
	}
}

// attachers are those who attach, by the first 15 characters of their names.
func attachers() []string { return []string{"kube-controller", "csi-attacher"} }

// killedWhileAttaching kills those who attach while the cloud has begun, and the driver's controller too.
func (s *scene) killedWhileAttaching() {
	s.cloud.Server.Stick("attaching", true)
	s.kubectl("cordon", lost)
	s.kubectl("delete", "pod", "web-0")
	s.on("the volume is being attached", region.NodeA)
	s.kill("KILL", append(attachers(), "stowage")...)
	// Stimulus: those who come back ask for the same attachment, and the cloud has not finished it.
	<-time.After(15 * time.Second)
	s.on("the volume is still being attached", region.NodeA)
	s.cloud.Server.Stick("attaching", false)
	begin := time.Now()
	s.eventually("the pod runs", 2*patience,
		func(context.Context) error { return s.says(kept, "/data/file: OK\nlives 2") })
	s.passed("the pod runs after those who attach were killed", begin)
}

// podGoneMeanwhile has the pod finish while nobody attaches or detaches.
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

// without has the pod end while those who attach and detach are stopped. The pod is back afterwards.
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

// attachmentForgotten loses the VolumeAttachment of an attachment, which nobody in Kubernetes knows of then.
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

// volumeForgotten takes a PersistentVolume away by force while its volume is attached. Its VolumeAttachment says so,
// and a PersistentVolume of that name and volume, as the guide has it, lets csi-attacher detach.
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

// saved writes a PersistentVolume into a file, as a backup has it.
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

// on waits until the volume is attached to these machines, or being attached.
func (s *scene) on(what string, machines ...string) {
	s.Helper()
	s.eventually(what, 2*patience, func(context.Context) error { // Everybody asks ever more seldom.
		if have := s.attached(); !slices.Equal(have, machines) {
			return fmt.Errorf("it is attached to %q", have)
		}
		return nil
	})
}

// attachments are the names of the driver's VolumeAttachments.
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
