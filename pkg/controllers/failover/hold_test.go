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

// uses makes the kubelet report a volume in use.
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

// markBeside adds an out-of-service taint that evicts no pods.
func (s *scene) markBeside(value string) {
	s.Helper()
	s.change(func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taintKey, Value: value,
			Effect: corev1.TaintEffectNoSchedule})
	})
}

// TestHold checks when a volume may be detached: the kubelet's report counts as long as the kubelet may be alive.
func TestHold(t *testing.T) {
	const inUse, silent = "the kubelet of node one reports it in use", "has reported it in use, and is silent: "
	const runs = silent + "its machine runs and may write to them. i-one is running. Stop the machine"
	const gone = "node one is gone or another machine has its name, and the machine that it was may still write to it: " +
		"terminate that one, or stop it for 1m0s. "
	const goneAs = gone + "If it is off for certain and its provider does not say so, detach the volume there, and then " +
		"take the finalizer from the VolumeAttachment. "
	ofTwo := func(a *storagev1.VolumeAttachment) { a.Annotations[nodeIDNote] = "i-two" }
	offAndSilent := func(s *scene) {
		s.state = machines.Stopped
		s.passes(20 * time.Second)
		s.wantTaint(true)
	}
	for name, c := range map[string]struct {
		happens func(s *scene)
		node    string // in the query; i-one by default, and - for all
		held    string // empty if it may be detached
	}{
		"nobody uses it":  {func(*scene) {}, "", ""},
		"it uses another": {func(s *scene) { s.uses("other") }, "", ""},
		"another machine's name": {func(s *scene) {
			s.attach(s.attachmentName("one", "v"), ofTwo)
		}, "i-two", goneAs + "i-two is running"},
		"another machine's name, and its kubelet wants it": {func(s *scene) {
			s.uses("v")
			s.attach(s.attachmentName("one", "v"), ofTwo)
		}, "i-two", goneAs + "i-two is running"},
		"another machine's name, and that one has ended": {func(s *scene) {
			s.uses("v")
			s.attach(s.attachmentName("one", "v"), ofTwo)
			s.state = machines.Terminated
		}, "i-two", ""},
		"another machine takes the Node over": {func(s *scene) {
			s.change(func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID, n.Status.NodeInfo.BootID = "system-2", "boot-2" })
			s.renew()
			s.passes(time.Second)
		}, "", gone},
		"another machine takes the Node over right now": {func(s *scene) {
			s.change(func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID, n.Status.NodeInfo.BootID = "system-2", "boot-2" })
			s.renew()
		}, "", gone},
		"a new machine's name, without the driver": {func(s *scene) {
			s.attach(s.attachmentName("one", "v"), ofTwo)
			s.unregister()
			s.manage(s.cache)
		}, "i-two", goneAs + "i-two is running"},
		"without the driver, and nobody uses it": {func(s *scene) {
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.unregister()
			s.manage(s.cache)
		}, "", ""},
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
			offAndSilent(s)
			s.renew()
			s.passes(time.Second)
		}, "", inUse},
		"out of service, it was back, and it is silent anew": {func(s *scene) {
			s.uses("v")
			offAndSilent(s)
			s.state, s.began = machines.Running, time.Unix(2000, 0)
			s.lives(30 * time.Second)
			s.passes(20 * time.Second)
			s.wantTaint(true)
		}, "", runs},
		"out of service, and the manager is a new one": {func(s *scene) {
			s.uses("v")
			offAndSilent(s)
			s.manage(s.cache)
			s.passes(30 * time.Second)
		}, "", silent + "the provider's answer may be older"},
		"out of service, and the manager was a new one": {func(s *scene) {
			s.uses("v")
			offAndSilent(s)
			s.manage(s.cache)
			s.passes(61 * time.Second)
		}, "", ""},
		"attached to it by another name too": {func(s *scene) {
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.attach(s.attachmentName("former", "v"), func(a *storagev1.VolumeAttachment) { a.Spec.NodeName = "former" })
		}, "", ""},
		"it renews right now": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.passes(time.Minute)
			s.renew()
		}, "", inUse},
		"the driver is away there": {func(s *scene) {
			s.uses("v")
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.unregister()
		}, "", inUse},
		"the driver is away there, and Kubernetes has no name for the machine": {func(s *scene) {
			s.change(func(n *corev1.Node) { n.Spec.ProviderID = "" })
			s.uses("v")
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.unregister()
		}, "", inUse},
		"silent, and it runs": {func(s *scene) {
			s.uses("v")
			s.passes(10 * time.Minute)
		}, "", runs + "; if it is off for certain, say so by a value that the taint does not have yet: kubectl taint " +
			"nodes one " + taintKey + "=VALUE:NoExecute --overwrite. It counts once Kubernetes calls the node Unknown"},
		"silent, and the provider is away": {func(s *scene) {
			s.uses("v")
			s.trouble = errors.New("no answer in time")
			s.passes(10 * time.Minute)
		}, "", silent + "what its machine does is not known: no answer in time"},
		"stopped, and the answer may be old": {func(s *scene) {
			s.uses("v")
			s.manage(s.cache) // This manager has not seen the machine run.
			s.refusing = errors.New("no taint")
			s.state = machines.Stopped
			s.passes(40 * time.Second)
		}, "", silent + "the provider's answer may be older"},
		"stopped, and the answer is not old": {func(s *scene) {
			s.uses("v")
			s.manage(s.cache)
			s.refusing = errors.New("no taint")
			s.state = machines.Stopped
			s.passes(61 * time.Second)
		}, "", ""},
		"stopped, and it was seen to run": {func(s *scene) {
			s.uses("v")
			s.refusing = errors.New("no taint")
			s.state = machines.Stopped
			s.passes(12 * time.Second)
		}, "", ""},
		"out of service by us": {func(s *scene) {
			s.uses("v")
			s.state = machines.Stopped
			s.passes(13 * time.Second)
			s.wantTaint(true)
		}, "", ""},
		"out of service in our name, and it works": {func(s *scene) {
			s.uses("v")
			s.renew()
			s.passes(time.Second)
			s.mark(driverName)
			s.passes(time.Second)
		}, "", inUse},
		"out of service in our name, silent, and it lives": {func(s *scene) {
			s.uses("v")
			s.mark(driverName)
			s.lives(time.Minute)
			s.passes(time.Minute)
		}, "", runs},
		"stopped, and it lived on when the same was said before": {func(s *scene) {
			s.uses("v")
			s.change(func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID, n.Status.NodeInfo.BootID = "system-2", "boot-2" })
			s.manage(s.cache) // This manager has not seen the other machine.
			s.state = machines.Stopped
			s.lives(2 * time.Minute)
			s.passes(5 * time.Minute)
		}, "", silent + "the node lived on when the provider said the same before"},
		"the same, and the manager does not lead": {func(s *scene) {
			s.uses("v")
			s.change(func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID, n.Status.NodeInfo.BootID = "system-2", "boot-2" })
			s.manage(s.cache)
			s.elected = make(chan struct{})
			s.change(ready(corev1.ConditionUnknown)) // So it asks before the node is silent.
			s.state = machines.Stopped
			s.lives(2 * time.Minute)
			s.passes(5 * time.Minute)
		}, "", silent + "the node lived on when the provider said the same before"},
		"out of service by a person, silent since just now": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.change(ready(corev1.ConditionUnknown))
			s.passes(29 * time.Second) // Its last sign of life was ten seconds before.
		}, "", "counts once Kubernetes calls the node Unknown, and it has been silent for 40s"},
		"out of service by a person since it was off before": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.lives(time.Minute)
			s.change(ready(corev1.ConditionUnknown))
			s.passes(5 * time.Minute)
		}, "", runs},
		"the same, and it was given anew": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.lives(time.Minute)
			s.change(ready(corev1.ConditionUnknown))
			s.passes(5 * time.Minute)
			s.mark("another word")
			s.passes(time.Second)
		}, "", ""},
		"the same, and it is given another effect": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.lives(time.Minute)
			s.change(ready(corev1.ConditionUnknown))
			s.passes(5 * time.Minute)
			s.markBeside("person")
			s.passes(time.Second)
		}, "", runs},
		"out of service, it was back, it is silent anew, and somebody adds a taint": {func(s *scene) {
			s.uses("v")
			offAndSilent(s)
			s.state, s.began = machines.Running, time.Unix(2000, 0)
			s.lives(30 * time.Second)
			s.passes(20 * time.Second)
			s.markBeside("another")
			s.passes(time.Second)
		}, "", runs},
		"out of service by us, back, and a person says that it is off": {func(s *scene) {
			s.uses("v")
			offAndSilent(s)
			s.state, s.began = machines.Running, time.Unix(2000, 0)
			s.lives(30 * time.Second)
			s.change(ready(corev1.ConditionUnknown))
			s.passes(40 * time.Second)
			s.mark("off")
			s.passes(time.Second)
		}, "", ""},
		"out of service by a person, silent, and not Ready by its own word": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.change(ready(corev1.ConditionFalse))
			s.passes(10 * time.Minute)
		}, "", runs},

		"out of service by a person, silent, and Ready": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.passes(10 * time.Minute)
		}, "", runs},
		"out of service by a person, silent": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.change(ready(corev1.ConditionUnknown))
			s.passes(30 * time.Second)
		}, "", ""},
		"out of service by a person, silent, and the manager is a new one": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.change(ready(corev1.ConditionUnknown))
			s.manage(s.cache) // This manager cannot know how old the taint is.
			s.passes(41 * time.Second)
		}, "", runs},
		"out of service by a person, and it renews its Lease seldom": {func(s *scene) {
			s.uses("v")
			s.mark("person")
			s.change(ready(corev1.ConditionUnknown))
			s.renewsEach(50)
			s.passes(45 * time.Second)
		}, "", inUse},
		"the Node is gone, and the machine runs": {func(s *scene) {
			s.uses("v")
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.lose()
		}, "", goneAs + "i-one is running"},
		"the Node is gone, and the machine is being stopped": {func(s *scene) {
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.lose()
			s.state = machines.Stopping
		}, "", "may still write"},
		"the Node is gone, and the machine has ended": {func(s *scene) {
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.lose()
			s.state = machines.Terminated
		}, "", ""},
		"the Node is gone, and the machine has been stopped for long": {func(s *scene) {
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.lose()
			s.state = machines.Stopped
			s.passes(2 * time.Minute)
		}, "", ""},
		"the Node is gone, and the machine is stopped": {func(s *scene) {
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.lose()
			s.state = machines.Stopped
		}, "", goneAs + "i-one is stopped"},
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

// unregister removes the driver's registration from the node.
func (s *scene) unregister() {
	s.Helper()
	s.must(s.api.Delete(s.Context(), &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
}

// TestHoldOfALostNode checks that a volume of a deleted Node is held until the provider's answer cannot be outdated.
func TestHoldOfALostNode(t *testing.T) {
	for _, state := range []machines.State{machines.Stopped, machines.Missing} {
		s := newScene(t)
		s.attach(s.attachmentName("one", "v"), asItIs)
		s.lose()
		isHeld := func(when string, want bool) {
			t.Helper()
			have, err := s.Hold(t.Context(), holds.Query{Volume: "v", Node: "i-one"})
			if err != nil || have.Held != want {
				t.Errorf("%s, %s: %+v, %v, want it held: %t", state, when, have, err, want)
			}
		}
		s.state = state
		isHeld("at first", true)
		s.clock = s.clock.Add(50 * time.Second)
		isHeld("soon", true)
		s.state = machines.Running
		isHeld("it runs", true)
		s.state = state
		s.clock = s.clock.Add(50 * time.Second)
		isHeld("anew", true)
		s.clock = s.clock.Add(time.Minute)
		isHeld("for a minute", false)
		s.clock = s.clock.Add(10 * time.Minute)
		isHeld("after a long time, in which it may have run", true)
	}
}

// TestHoldBesideAFailedAnswer checks that one failed answer does not begin the wait for a deleted Node's machine anew.
func TestHoldBesideAFailedAnswer(t *testing.T) {
	s := newScene(t)
	s.attach(s.attachmentName("one", "v"), asItIs)
	s.lose()
	s.state = machines.Stopped
	s.passes(50 * time.Second)
	answer := s.provider.answer
	s.provider.answer = func(machines.Query) (machines.Machine, error) {
		return machines.Machine{}, errors.New("no answer in time")
	}
	s.passes(11 * time.Second)
	s.provider.answer = answer
	if have, err := s.Hold(t.Context(), holds.Query{Volume: "v", Node: "i-one"}); err != nil || have.Held {
		t.Errorf("%+v, %v, want it free", have, err)
	}
}

// renewsEach lets the node live for a while with a kubelet that renews its Lease once in the given seconds. The Lease
// duration is four times as long.
func (s *scene) renewsEach(seconds int32) {
	s.Helper()
	lease, duration := &coordinationv1.Lease{}, 4*seconds
	s.must(s.api.Get(s.Context(), client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: "one"}, lease))
	lease.Spec.LeaseDurationSeconds = &duration
	s.must(s.api.Update(s.Context(), lease))
	for range 3 {
		s.renew()
		s.passes(time.Duration(seconds) * time.Second)
	}
	s.renew()
	s.passes(time.Second)
}

// TestHoldBesideALateCache checks the hold of a new node that the cache does not show yet.
func TestHoldBesideALateCache(t *testing.T) {
	s := newScene(t)
	s.uses("v")
	s.lives(90 * time.Second)
	s.cache = &lateCache{Client: s.cache}
	for _, machine := range []string{"i-one", ""} { // "" stands for all machines.
		if have, err := s.Hold(t.Context(), holds.Query{Volume: "v", Node: machine}); err != nil || !have.Held {
			t.Errorf("%q: %+v, %v, want it held", machine, have, err)
		}
	}
}

// TestHoldOfANewRegistration checks the hold after a node has registered as another machine and the cache does not show
// it yet: the record of the former machine does not apply.
func TestHoldOfANewRegistration(t *testing.T) {
	s := newScene(t)
	s.uses("v")
	s.lives(90 * time.Second)
	late := &lateCache{Client: s.cache}
	s.must(late.catchUp(t.Context(), s.api))
	s.cache, s.refusing, s.state = late, errors.New("no taint"), machines.Stopped
	registration := &storagev1.CSINode{}
	s.must(s.api.Get(t.Context(), client.ObjectKey{Name: "one"}, registration))
	registration.Spec.Drivers[0].NodeID = "i-two"
	s.must(s.api.Update(t.Context(), registration))
	s.passes(12 * time.Second)
	if have, err := s.Hold(t.Context(), holds.Query{Volume: "v", Node: "i-two"}); err != nil || !have.Held {
		t.Errorf("%+v, %v, want it held", have, err)
	}
}

// TestHoldWaitsForTheTaint checks that a detachment that comes before our own taint was seen waits, and is not refused.
func TestHoldWaitsForTheTaint(t *testing.T) {
	s := newScene(t)
	s.uses("v")
	s.lives(90 * time.Second)
	s.passes(5 * time.Second)
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

// TestHoldThatIsNotKnown checks that nothing is free if a read fails or the node's machine is not known.
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
		"which machine a Node is": func(s *scene) {
			s.change(func(n *corev1.Node) { n.Spec.ProviderID = "" })
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.unregister()
			s.manage(s.cache)
		},
		"what the machine of a Node does that is gone": func(s *scene) {
			s.attach(s.attachmentName("one", "v"), asItIs)
			s.lose()
			s.trouble = trouble
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.lives(90 * time.Second)
			hide(s)
			if have, err := s.Hold(t.Context(), holds.Query{Volume: "v", Node: "i-one"}); err == nil ||
				!errors.Is(err, trouble) && !strings.Contains(err.Error(), "which machine node one is, is not known") {
				t.Errorf("%+v, %v, want an error", have, err)
			}
		})
	}
}

// TestHoldOfANewManager checks that a manager that has just started considers no node silent.
func TestHoldOfANewManager(t *testing.T) {
	s := newScene(t)
	s.uses("v")
	s.mark("person")
	s.change(ready(corev1.ConditionUnknown))
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

// TestHoldOfAMachineThatNobodyKnows checks that an unknown machine is an error, and not free.
func TestHoldOfAMachineThatNobodyKnows(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	have, err := s.Hold(t.Context(), holds.Query{Volume: "v", Node: "i-two"})
	if err == nil || !strings.Contains(err.Error(), "no node has registered as i-two") {
		t.Errorf("%+v, %v, want an error", have, err)
	}
}
