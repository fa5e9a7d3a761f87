package orphan

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// storage is a driver with a given list.
type storage struct {
	volumes []csiclient.Listed
	err     error
	hangs   bool
	others  bool // it also lists volumes of other clusters
	stuck   error
	deleted []string
	meet    func(handle string) // called when a volume has been deleted, if set
}

func (s *storage) Driver() string   { return "ebs.csi.example" }
func (s *storage) CanList() bool    { return true }
func (s *storage) ListsNodes() bool { return true }
func (s *storage) ListsOwn() bool   { return !s.others }
func (s *storage) Delete(_ context.Context, handle string) error {
	if s.stuck == nil {
		s.deleted = append(s.deleted, handle)
		s.volumes = slices.DeleteFunc(s.volumes, func(v csiclient.Listed) bool { return v.Handle == handle })
		if s.meet != nil {
			s.meet(handle)
		}
	}
	return s.stuck
}
func (s *storage) List(ctx context.Context) ([]csiclient.Listed, error) {
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.volumes, s.err
}

// scene has an API with the PersistentVolume pv-a of the volume a and the node one, a storage that has a attached to
// one, and sweeps that repair.
type scene struct {
	*testing.T
	*sweeper
	api     client.WithWatch
	storage *storage
	events  *events.FakeRecorder
	failing error // of deletions
}

func newScene(t *testing.T, objects ...client.Object) *scene {
	t.Helper()
	return newSceneWithout(t, append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}})...)
}

// newSceneWithout returns a scene without the node one.
func newSceneWithout(t *testing.T, objects ...client.Object) *scene {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, storagev1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &scene{T: t, storage: &storage{volumes: []csiclient.Listed{{Handle: "a", Nodes: []string{"id-1"}}}},
		events: events.NewFakeRecorder(100)}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-a"}}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: s.storage.Driver(), VolumeHandle: "a"}
	node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	node.Spec.Drivers = []storagev1.CSINodeDriver{{Name: s.storage.Driver(), NodeID: "id-1"}}
	s.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(volume, node).WithObjects(objects...).Build()
	own := interceptor.NewClient(s.api, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if s.failing != nil {
				return s.failing
			}
			return c.Delete(ctx, o, options...)
		},
	})
	s.sweeper = &sweeper{
		Options: Options{Driver: s.storage, Log: slog.New(slog.DiscardHandler), Grace: time.Hour, Repair: true},
		cache:   own, live: s.api, events: s.events, metrics: newMetrics("d"), seen: memory{}, slots: map[string]time.Time{},
		told: map[difference]bool{},
	}
	return s
}

// sweeps runs the given number of sweeps, and returns the VolumeAttachments that exist then.
func (s *scene) sweeps(times int) []storagev1.VolumeAttachment {
	s.Helper()
	for range times {
		if err := s.sweep(s.Context()); err != nil {
			s.Fatal(err)
		}
	}
	var list storagev1.VolumeAttachmentList
	if err := s.api.List(s.Context(), &list); err != nil {
		s.Fatal(err)
	}
	return list.Items
}

func (s *scene) wantNone(attachments []storagev1.VolumeAttachment) {
	s.Helper()
	if len(attachments) > 0 {
		s.Errorf("there are VolumeAttachments: %+v", attachments)
	}
}

// wantRepair checks for the VolumeAttachment that makes csi-attacher detach.
func (s *scene) wantRepair(attachments []storagev1.VolumeAttachment) {
	s.Helper()
	if len(attachments) != 1 {
		s.Fatalf("there are %d VolumeAttachments, want the one of the repair", len(attachments))
	}
	a := attachments[0]
	if a.DeletionTimestamp == nil || a.Finalizers[0] != "external-attacher/ebs-csi-example" ||
		a.Annotations[nodeIDNote] != "id-1" ||
		a.Spec.NodeName != "one" || a.Spec.Source.InlineVolumeSpec.CSI.VolumeHandle != "a" {
		s.Errorf("the VolumeAttachment of the repair is %+v", a)
	}
}

func TestDanglingAttachmentIsRepaired(t *testing.T) {
	s := newScene(t)
	s.wantNone(s.sweeps(1))
	s.wantRepair(s.sweeps(3))
	if event := <-s.events.Events; !strings.Contains(event, "AttachedWithoutVolumeAttachment") {
		t.Errorf("the event is %q", event)
	}
	if len(s.events.Events) > 0 {
		t.Errorf("it is told again: %q", <-s.events.Events)
	}
}

func TestRepairIsAskedFor(t *testing.T) {
	s := newScene(t)
	s.Repair = false
	s.wantNone(s.sweeps(3))
}

// TestVolumeInUseStaysAttached checks that a volume stays attached if a kubelet reports it in use, whatever the API
// server lost.
func TestVolumeInUseStaysAttached(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/ebs.csi.example^a"}
	s := newSceneWithout(t, node)
	s.wantNone(s.sweeps(3))
}

// TestDeletedNodeKeepsItsVolume checks that a deleted node keeps its volume: its machine may still use it.
func TestDeletedNodeKeepsItsVolume(t *testing.T) {
	s := newSceneWithout(t)
	s.wantNone(s.sweeps(3))
}

// TestRenamedNodeKeepsItsVolume checks a renamed machine whose old Node still exists, without a kubelet, while the new
// node uses the volume.
func TestRenamedNodeKeepsItsVolume(t *testing.T) {
	renamed := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "renamed"}}
	renamed.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "ebs.csi.example", NodeID: "id-1"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "renamed"}}
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/ebs.csi.example^a"}
	s := newScene(t, renamed, node)
	s.wantNone(s.sweeps(3))
	if event := <-s.events.Events; !strings.Contains(event, "one or renamed") {
		t.Errorf("the event is %q", event)
	}
}

// TestFailedSweepBreaksTheRow checks that two sweeps with a failed one in between are not consecutive.
func TestFailedSweepBreaksTheRow(t *testing.T) {
	s := newScene(t)
	s.sweeps(1)
	s.storage.err = errors.New("no credentials")
	if err := s.sweep(t.Context()); !errors.Is(err, s.storage.err) {
		t.Errorf("the sweep ends with %v", err)
	}
	s.storage.err = nil
	s.wantNone(s.sweeps(1))
	s.wantRepair(s.sweeps(1))
}

// TestKubernetesWasFaster checks that a repair leaves a VolumeAttachment alone that Kubernetes wrote after the sweep's
// read.
func TestKubernetesWasFaster(t *testing.T) {
	d := difference{kind: dangling, handle: "a", node: "one"}
	theirs := detachment("ebs.csi.example", d, "")
	theirs.Annotations = nil
	s := newScene(t, theirs)
	if err := s.repair(t.Context(), d, "id-1"); err != nil {
		t.Fatal(err)
	}
	if left := s.sweeps(0); len(left) != 1 || left[0].DeletionTimestamp != nil {
		t.Errorf("there are %+v", left)
	}
}

// TestRepairThatWasCutShort checks that a VolumeAttachment left by a manager that stopped before deleting it is deleted
// by the next one.
func TestRepairThatWasCutShort(t *testing.T) {
	s := newScene(t)
	s.sweeps(1)
	s.failing = errors.New("the manager is gone")
	if err := s.sweep(t.Context()); !errors.Is(err, s.failing) {
		t.Fatalf("the sweep ends with %v", err)
	}
	s.failing, s.seen = nil, memory{}
	s.wantRepair(s.sweeps(1))
}

// TestListsThatProveNothing checks that nothing is repaired if the list fails.
func TestListsThatProveNothing(t *testing.T) {
	s := newScene(t)
	s.sweeps(1)
	s.storage.err = errors.New("no credentials")
	if err := s.sweep(t.Context()); !errors.Is(err, s.storage.err) {
		t.Errorf("the sweep ends with %v", err)
	}
	s.wantNone(s.sweeps(0))
}

// TestDriverThatHangs checks that a sweep ends although the driver does not answer.
func TestDriverThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.storage.hangs = true
		if err := s.sweep(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the sweep ends with %v", err)
		}
	})
}

func TestVolumesBeingDeletedAreNotMissing(t *testing.T) {
	volume := func(phase corev1.PersistentVolumePhase,
		policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: string(phase) + string(policy)}}
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{VolumeHandle: v.Name}
		v.Spec.PersistentVolumeReclaimPolicy, v.Status.Phase = policy, phase
		return v
	}
	have := expected([]*corev1.PersistentVolume{
		volume(corev1.VolumeBound, corev1.PersistentVolumeReclaimDelete),
		volume(corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete),
		volume(corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain),
	})
	if len(have) != 2 || have["ReleasedDelete"] != "" {
		t.Errorf("these must have a volume: %q", have)
	}
}
