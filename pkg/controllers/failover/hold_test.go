package failover

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/holds"
	"github.com/stowage-csi/stowage/pkg/machines"
)

// uses has the kubelet report a volume in use.
func (s *scene) uses(handle string) {
	s.Helper()
	s.change(func(n *corev1.Node) {
		n.Status.VolumesInUse = []corev1.UniqueVolumeName{
			corev1.UniqueVolumeName("kubernetes.io/csi/" + driverName + "^" + handle)}
	})
}

// mark puts the node out of service.
func (s *scene) mark(value string) {
	s.Helper()
	s.change(func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: taintKey, Value: value, Effect: corev1.TaintEffectNoExecute}}
	})
}

// TestHold checks when a volume may be detached: the kubelet's word counts as long as it may be alive.
func TestHold(t *testing.T) {
	const inUse, mayWrite = "the kubelet of node one reports it in use", "may still write to it"
	for name, c := range map[string]struct {
		happens func(s *scene)
		node    string // that is asked about; i-one by default, and - for all
		held    string // nothing for free
	}{
		"nobody uses it":       {func(*scene) {}, "", ""},
		"it uses another":      {func(s *scene) { s.uses("other") }, "", ""},
		"another machine":      {func(s *scene) { s.uses("v") }, "i-two", ""},
		"in use":               {func(s *scene) { s.uses("v") }, "", inUse},
		"in use, all machines": {func(s *scene) { s.uses("v") }, "-", inUse},
		"nobody, all machines": {func(*scene) {}, "-", ""},
		"out of service by a person, and it lives": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.lives(time.Minute)
		}, "", inUse},
		"out of service, and it is back": {func(s *scene) {
			s.uses("v")
			s.state = machines.Stopped
			s.passes(20 * time.Second)
			s.wantTaint(true)
			s.renew()
			s.passes(time.Second)
		}, "", inUse},
		"it renews right now": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.passes(time.Minute)
			s.renew()
		}, "", inUse},
		"the driver is away there": {func(s *scene) {
			s.uses("v")
			s.attach("a", asItIs)
			s.must(s.api.Delete(s.Context(), &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
		}, "", inUse},
		"silent, and it runs": {func(s *scene) {
			s.uses("v")
			s.passes(10 * time.Minute)
		}, "", mayWrite + ". Stop the machine; if it is off for certain, give the node the taint " + taintKey +
			". i-one is running"},
		"silent, and the provider is away": {func(s *scene) {
			s.uses("v")
			s.trouble = errors.New("no answer in time")
			s.passes(10 * time.Minute)
		}, "", "no answer in time"},
		"stopped, and the answer may be old": {func(s *scene) {
			s.uses("v")
			s.refusing = errors.New("no taint")
			s.state = machines.Stopped
			s.passes(40 * time.Second)
		}, "", mayWrite},
		"stopped": {func(s *scene) {
			s.uses("v")
			s.refusing = errors.New("no taint")
			s.state = machines.Stopped
			s.passes(90 * time.Second)
		}, "", ""},
		"out of service by us": {func(s *scene) {
			s.uses("v")
			s.state = machines.Stopped
			s.passes(13 * time.Second)
			s.wantTaint(true)
		}, "", ""},
		"out of service by us, seen before its Lease is overdue": {func(s *scene) {
			s.uses("v")
			s.mark(driverName)
			s.passes(time.Second)
		}, "", ""},
		"stopped, and it lived on when the same was said before": {func(s *scene) {
			s.uses("v")
			s.change(func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID, n.Status.NodeInfo.BootID = "system-2", "boot-2" })
			s.manage(s.cache) // One that has not seen the other machine.
			s.state = machines.Stopped
			s.lives(2 * time.Minute)
			s.passes(5 * time.Minute)
		}, "", mayWrite},
		"out of service by a person, silent since just now": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.passes(29 * time.Second) // Its last sign of life was ten seconds before.
		}, "", mayWrite},
		"out of service by a person, silent": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.passes(30 * time.Second)
		}, "", ""},
		"the Node is gone": {func(s *scene) {
			s.uses("v")
			s.attach("a", asItIs)
			s.lose()
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.lives(90 * time.Second)
			c.happens(s)
			q := holds.Query{Volume: "v", Node: "i-one"}
			if c.node != "" {
				q.Node = strings.TrimPrefix(c.node, "-")
			}
			have, err := s.Hold(t.Context(), q)
			if err != nil || have.Held != (c.held != "") || !strings.Contains(have.Says, c.held) {
				t.Errorf("%+v, %v, want %q", have, err, c.held)
			}
		})
	}
}

// TestHoldWaitsForTheTaint checks that a detachment which comes before our own taint was seen is not refused: what
// follows a proof is quick.
func TestHoldWaitsForTheTaint(t *testing.T) {
	s := newScene(t)
	s.uses("v")
	s.lives(90 * time.Second)
	s.mark(driverName)
	asked := make(chan struct{}, 10)
	s.reader = interceptor.NewClient(s.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, ok := o.(*coordinationv1.Lease); ok {
				asked <- struct{}{}
			}
			return c.Get(ctx, key, o, options...)
		}})
	answer := make(chan holds.Hold, 1)
	go func() {
		have, err := s.Hold(t.Context(), holds.Query{Volume: "v", Node: "i-one"})
		if err != nil {
			t.Error(err)
		}
		answer <- have
	}()
	<-asked
	s.must(s.pass(t.Context()))
	if have := <-answer; have.Held {
		t.Errorf("%+v, want it free", have)
	}
}

// TestHoldThatIsNotKnown checks that nothing is free that cannot be looked at.
func TestHoldThatIsNotKnown(t *testing.T) {
	trouble := errors.New("the API server is away")
	for name, hide := range map[string]func(s *scene){
		"the node": func(s *scene) {
			s.reader = interceptor.NewClient(s.api, interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return trouble
				}})
		},
		"which node it is": func(s *scene) {
			s.cache = interceptor.NewClient(s.api, interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return trouble }})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.lives(90 * time.Second)
			hide(s)
			if have, err := s.Hold(t.Context(), holds.Query{Volume: "v", Node: "i-one"}); !errors.Is(err, trouble) {
				t.Errorf("%+v, %v, want an error", have, err)
			}
		})
	}
}

// TestHoldOfANewManager checks that a manager that has just started takes no node for silent.
func TestHoldOfANewManager(t *testing.T) {
	s := newScene(t)
	s.uses("v")
	s.mark("person")
	s.passes(5 * time.Minute)
	s.manage(s.cache)
	for _, looks := range []int{0, 1} {
		for range looks {
			s.must(s.pass(t.Context()))
		}
		if have, err := s.Hold(t.Context(), holds.Query{Volume: "v", Node: "i-one"}); err != nil || !have.Held {
			t.Errorf("after %d looks %+v, %v, want it held", looks, have, err)
		}
	}
}
