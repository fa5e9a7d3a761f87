package worker

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// ahead is a process that opens disks to which another agent has passed on a newer state.
type ahead struct{ *node }

func (d ahead) Want(ctx context.Context, w report.Wanted) error {
	if !w.Source.IsNewest {
		return report.ErrOlder
	}
	return d.node.Want(ctx, w)
}

// TestOlderAgent checks that an agent whose cache is behind another's neither insists nor writes a status, and that one
// whose state is the newest after all, as after a restore of the cluster's objects, insists.
func TestOlderAgent(t *testing.T) {
	s := newScene(t)
	before := s.look("one") // The cache has caught up.
	live := &server{now: []v1alpha1.NodeStorage{{ObjectMeta: metav1.ObjectMeta{Generation: 7}}}}
	s.agent.live, s.agent.Disks, s.disks.wanted = live, ahead{s.disks}, report.Wanted{}
	s.disks.state.Problem = "a state that was not reported yet"
	key := types.NamespacedName{Namespace: "stowage-system", Name: "one"}
	result, err := s.agent.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil || result.RequeueAfter == 0 || len(s.disks.wanted.Deletions) > 0 {
		t.Errorf("the disks were told %+v, and it looks again in %v: %v", s.disks.wanted, result.RequeueAfter, err)
	}
	after := &v1alpha1.NodeStorage{}
	if err := s.api.Get(t.Context(), key, after); err != nil ||
		after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the status became %+v: %v", after.Status, err)
	}
	live.now = []v1alpha1.NodeStorage{{}}
	if after = s.look("one"); len(s.disks.wanted.Deletions) != 1 || after.Status.Conditions[0].Reason != reasonProblem {
		t.Errorf("with the newest state the disks were told %+v, and the status is %+v", s.disks.wanted, after.Status)
	}
}

// TestSourceIsPassedOn checks that the disks learn in which state of which object their agent has read its wishes.
func TestSourceIsPassedOn(t *testing.T) {
	object := &v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{UID: "0a1b", Generation: 7}}
	if got, want := wanted(object).Source, (report.Source{Object: "0a1b", Generation: 7}); got != want {
		t.Errorf("the source is %+v, want %+v", got, want)
	}
}
