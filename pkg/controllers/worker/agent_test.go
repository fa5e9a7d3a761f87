package worker

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// node is a fake of the process that opens disks: it returns a given state, and records the requests.
type node struct {
	state  report.State
	wanted report.Wanted
	err    error
}

func (n *node) State(context.Context, string) (report.State, error) { return n.state, n.err }

func (n *node) Want(_ context.Context, w report.Wanted) error {
	n.wanted = w
	return n.err
}

// scene has an API with the NodeStorages of two nodes, and the agent of one.
type scene struct {
	*testing.T
	api   client.Client
	disks *node
	agent *agent
}

func newScene(t *testing.T) *scene {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := func(name string) *v1alpha1.NodeStorage {
		return &v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{Namespace: "stowage-system", Name: name}}
	}
	mine := object("one")
	mine.Spec.Offers = []v1alpha1.VolumeOffer{{Volume: "disk-a", PersistentVolume: "pv-a", WipePolicy: v1alpha1.WipeZero}}
	mine.Spec.DeleteOperations = []v1alpha1.DeleteRequest{{ID: "d-1", Volume: "disk-b", Policy: v1alpha1.WipeShred}}
	s := &scene{T: t, disks: &node{}}
	s.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(mine,
		object("two")).WithStatusSubresource(&v1alpha1.NodeStorage{}).
		WithIndex(&v1alpha1.NodeStorage{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		Build()
	s.agent = &agent{Options: Options{Node: "one", Namespace: "stowage-system", Disks: s.disks,
		Log: slog.New(slog.DiscardHandler)}, client: s.api, live: s.api}
	return s
}

// look reconciles an object and returns it.
func (s *scene) look(name string) *v1alpha1.NodeStorage {
	s.Helper()
	key := types.NamespacedName{Namespace: "stowage-system", Name: name}
	if _, err := s.agent.Reconcile(s.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		s.Fatal(err)
	}
	object := &v1alpha1.NodeStorage{}
	if err := s.api.Get(s.Context(), key, object); err != nil {
		s.Fatal(err)
	}
	return object
}

func TestReport(t *testing.T) {
	s := newScene(t)
	s.disks.state = report.State{
		Volumes: []report.Volume{
			{Name: "disk-a", Path: "/links/disk-a", Mode: report.Block, State: report.Offered, SizeBytes: 1 << 30},
			{Name: "disk-b", Path: "/links/disk-b", Mode: report.Block, State: report.Dirty, SizeBytes: 1 << 30,
				Message: strings.Repeat("ä", 600) + "\xff"},
			{Name: "disk-c", Path: "/mnt/disks/c", Mode: report.Filesystem, State: report.Available, SizeBytes: 1 << 20},
		},
		Deletions: []report.Deletion{{ID: "d-1", Volume: "disk-b", State: report.InProgress, Progress: 40}},
	}
	o := s.look("one")
	if w := s.disks.wanted; len(w.Offers) != 1 || w.Offers[0] != (report.Offer{ID: "pv-a", Volume: "disk-a"}) ||
		len(w.Deletions) != 1 || w.Deletions[0] != (report.Deletable{ID: "d-1", Volume: "disk-b", Method: method.Shred}) {
		t.Errorf("the disks were told %+v", w)
	}
	st := o.Status
	if st.Found != 3 || st.Available != 1 || st.Offered != 1 || st.Deleting != 1 ||
		len(st.Conditions) != 1 || st.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("the status is %+v", st)
	}
	if v := st.LocalVolumes[1]; v.State != v1alpha1.VolumeDirty || len(v.Message) > 1024 ||
		strings.ContainsRune(v.Message, '\uFFFD') || v.Capacity.Bytes() != 1<<30 {
		t.Errorf("the second volume is %+v", v)
	}
	if again := s.look("one"); again.ResourceVersion != o.ResourceVersion {
		t.Error("a status that says the same was written again")
	}
	s.disks.state.Problem = "no netlink"
	if o := s.look("one"); o.Status.Conditions[0].Message != "no netlink" {
		t.Errorf("the problem is not told: %+v", o.Status.Conditions)
	}
}

// TestDisksAreAway checks that the last reported state stays if the process does not answer, and that the condition
// says so.
func TestDisksAreAway(t *testing.T) {
	s := newScene(t)
	s.disks.state.Volumes = []report.Volume{{Name: "disk-a", Mode: report.Block, State: report.Available}}
	s.look("one")
	s.disks.err = errors.New("connection refused")
	o := s.look("one")
	ready := o.Status.Conditions[0]
	if len(o.Status.LocalVolumes) != 1 || ready.Status != metav1.ConditionFalse || ready.Reason != reasonUnreachable {
		t.Errorf("the status is %+v", o.Status)
	}
}

// TestDisksRestart checks that the last reported volumes stay until a restarted process has looked at the disks: its
// empty list does not mean that they are gone.
func TestDisksRestart(t *testing.T) {
	s := newScene(t)
	s.disks.state.Volumes = []report.Volume{
		{Name: "disk-a", Mode: report.Block, State: report.Offered},
		{Name: "disk-b", Mode: report.Block, State: report.Available},
	}
	before := s.look("one").Status
	s.disks.state = report.State{Problem: "the disks were not looked at yet",
		Deletions: []report.Deletion{{ID: "d-1", Volume: "disk-b", State: report.Requested}}}
	after := s.look("one").Status
	if !reflect.DeepEqual(after.LocalVolumes, before.LocalVolumes) || after.Found != 2 || after.Available != 1 ||
		after.Offered != 1 || after.Deleting != 1 || after.Conditions[0].Reason != reasonProblem {
		t.Errorf("before it has looked, the status is %+v", after)
	}
	s.disks.state.Problem = ""
	if after := s.look("one").Status; len(after.LocalVolumes) > 0 || after.Found+after.Available+after.Offered > 0 {
		t.Errorf("when it has looked and found nothing, the status is %+v", after)
	}
}

// server is an API server whose NodeStorages the cache does not have yet.
type server struct {
	client.Reader
	now []v1alpha1.NodeStorage
}

func (s *server) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.NodeStorageList).Items = s.now
	return nil
}

// TestOldCache checks that a new agent passes on no spec from before its start: a wipe in it may have been withdrawn.
func TestOldCache(t *testing.T) {
	for name, now := range map[string][]v1alpha1.NodeStorage{
		"the spec has changed":    {{ObjectMeta: metav1.ObjectMeta{Generation: 1}}},
		"the object was replaced": {{ObjectMeta: metav1.ObjectMeta{UID: "another"}}},
		"the object was removed":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			s, live := newScene(t), &server{now: now}
			s.agent.live = live
			key := types.NamespacedName{Namespace: "stowage-system", Name: "one"}
			result, err := s.agent.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			if w := s.disks.wanted; err != nil || result.RequeueAfter == 0 || len(w.Offers)+len(w.Deletions) > 0 {
				t.Errorf("the disks were told %+v, and it looks again in %v: %v", w, result.RequeueAfter, err)
			}
			live.now = []v1alpha1.NodeStorage{{}}
			if s.look("one"); len(s.disks.wanted.Deletions) != 1 {
				t.Errorf("with the API server's state in the cache, the disks were told %+v", s.disks.wanted)
			}
			live.now, s.disks.wanted = now, report.Wanted{}
			if s.look("one"); len(s.disks.wanted.Deletions) != 1 {
				t.Errorf("when the cache is behind for a moment, the disks were told %+v", s.disks.wanted)
			}
		})
	}
}

// TestOtherNodes checks that the agent writes no other node's object and creates none.
func TestOtherNodes(t *testing.T) {
	s := newScene(t)
	s.disks.state.Volumes = []report.Volume{{Name: "disk-a", Mode: report.Block, State: report.Available}}
	if o := s.look("two"); len(o.Status.Conditions) > 0 || s.disks.wanted.Offers != nil {
		t.Errorf("another node's object is %+v", o)
	}
	s.agent.Node = "three"
	key := types.NamespacedName{Namespace: "stowage-system", Name: "three"}
	if _, err := s.agent.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Error(err)
	}
	if err := s.api.Get(t.Context(), key, &v1alpha1.NodeStorage{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the agent made an object: %v", err)
	}
}
