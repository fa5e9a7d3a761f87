package failover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/machines"
)

const driverName = "ebs.csi.example"

// provider gives the test's answers.
type provider struct {
	answer func(machines.Query) (machines.Machine, error)
}

func (p *provider) Driver() string { return driverName }
func (p *provider) Machine(_ context.Context, q machines.Query) (machines.Machine, error) {
	return p.answer(q)
}

// scene has an API with the node "one", whose machine is i-one, a manager, and a clock that only the test advances.
type scene struct {
	*testing.T
	*watcher
	api      client.WithWatch
	provider *provider
	recorder *events.FakeRecorder
	clock    time.Time
	asked    []machines.Query
	state    machines.State
	began    time.Time
	trouble  error        // of the provider
	writing  func()       // called right before a taint is written
	refusing error        // the API server's error for a taint
	wrote    func() error // called right after a taint was written
	deleting func(o client.Object, options client.DeleteOptions) error
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, recorder: events.NewFakeRecorder(1000), clock: time.Now(), state: machines.Running,
		began: time.Unix(1000, 0)}
	s.provider = &provider{func(q machines.Query) (machines.Machine, error) {
		s.asked = append(s.asked, q)
		return machines.Machine{State: s.state, Began: s.began, Says: fmt.Sprintf("%s is %s", q.Node, s.state)}, s.trouble
	}}
	s.api = newAPI(t)
	own := interceptor.NewClient(s.api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			if s.writing != nil {
				s.writing()
			}
			if s.refusing != nil {
				return s.refusing
			}
			err := c.Patch(ctx, o, p, options...)
			if err == nil && s.wrote != nil {
				err = s.wrote()
			}
			return err
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return s.deleting(o, *(&client.DeleteOptions{}).ApplyOptions(options))
		},
	})
	s.join("one", "1")
	s.manage(own)
	return s
}

// manage starts a manager without memory.
func (s *scene) manage(own client.Client) {
	options := Options{Driver: s.provider, Log: slog.New(slog.DiscardHandler), Lag: time.Minute}
	s.watcher = newWatcher(options, own, s.api, s.recorder)
	s.now = func() time.Time { return s.clock }
	s.elected = closed()
}

// closed returns the election of a manager that leads.
func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func newAPI(t *testing.T) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, storagev1.AddToScheme,
		coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	onNode := func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
	machine := (&watcher{Options: Options{Driver: &provider{}}}).machinesOf
	return fake.NewClientBuilder().WithScheme(scheme).WithIndex(&corev1.Pod{}, "spec.nodeName", onNode).
		WithIndex(&storagev1.CSINode{}, byMachine, machine).
		WithIndex(&storagev1.VolumeAttachment{}, byMachine, machine).Build()
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// join creates a Node with its Lease and CSINode.
func (s *scene) join(name, uid string) {
	s.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	node.Spec.ProviderID = "cloud:///i-" + name
	node.Status.NodeInfo = corev1.NodeSystemInfo{BootID: "boot-" + uid, SystemUUID: "system-" + uid}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	s.must(s.api.Create(s.Context(), node))
	registration := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name,
			UID: types.UID(uid)}},
	}}
	registration.Spec.Drivers = []storagev1.CSINodeDriver{{Name: driverName, NodeID: "i-" + name}}
	s.must(s.api.Create(s.Context(), registration))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease}}
	s.must(s.api.Create(s.Context(), lease))
}

func (s *scene) node() *corev1.Node {
	s.Helper()
	node := &corev1.Node{}
	s.must(s.api.Get(s.Context(), client.ObjectKey{Name: "one"}, node))
	return node
}

// change changes the Node.
func (s *scene) change(edit func(*corev1.Node)) {
	s.Helper()
	node := s.node()
	edit(node)
	edited := node.DeepCopy()
	s.must(s.api.Update(s.Context(), node))
	node.Status = edited.Status
	s.must(s.api.Status().Update(s.Context(), node))
}

func ready(status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Conditions[0].Status = status }
}

// renew renews the node's Lease.
func (s *scene) renew() {
	s.Helper()
	s.renewOf("one")
}

func (s *scene) renewOf(node string) {
	s.Helper()
	lease := &coordinationv1.Lease{}
	s.must(s.api.Get(s.Context(), client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node}, lease))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: s.clock}
	s.must(s.api.Update(s.Context(), lease))
}

// lives lets time pass with signs of life.
func (s *scene) lives(d time.Duration) {
	s.Helper()
	for end := s.clock.Add(d); s.clock.Before(end); {
		s.renew()
		s.passes(10 * time.Second)
	}
}

// passes lets time pass, without a sign of life.
func (s *scene) passes(d time.Duration) {
	s.Helper()
	for end := s.clock.Add(d); s.clock.Before(end); s.clock = s.clock.Add(time.Second) {
		s.must(s.pass(s.Context()))
		s.must(s.freeLost(s.Context()))
	}
}

// taints returns the node's out-of-service taints.
func (s *scene) taints() (found []corev1.Taint) {
	s.Helper()
	for _, t := range s.node().Spec.Taints {
		if t.Key == taintKey {
			found = append(found, t)
		}
	}
	return found
}

func (s *scene) wantTaint(want bool) {
	s.Helper()
	if have := s.taints(); want != (len(have) == 1) {
		s.Errorf("out of service: %+v, want %t", have, want)
	}
}

// wantEvent checks that an event with these words was recorded, and drops all events up to it.
func (s *scene) wantEvent(words ...string) {
	s.Helper()
	var others []string
	for len(s.recorder.Events) > 0 {
		event := <-s.recorder.Events
		missing := false
		for _, w := range words {
			missing = missing || !strings.Contains(event, w)
		}
		if !missing {
			return
		}
		others = append(others, event)
	}
	s.Errorf("no event says %q; these were written: %q", words, others)
}

func TestMachineThatWasStopped(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	s.passes(20 * time.Second)
	s.wantTaint(false)
	s.wantEvent("NotProvenOff", "its machine runs")
	s.state = machines.Stopped
	s.passes(5 * time.Second)
	if have := s.taints(); len(have) != 1 || have[0].Value != driverName || have[0].Effect != corev1.TaintEffectNoExecute {
		t.Fatalf("the taint is %+v", have)
	}
	s.wantEvent("OutOfService", "i-one is stopped")
	if q := s.asked[len(s.asked)-1]; q != (machines.Query{Node: "i-one", ProviderID: "cloud:///i-one"}) {
		t.Errorf("asked was about %+v", q)
	}
}

func TestReturn(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	s.state = machines.Stopped
	s.passes(20 * time.Second)
	s.change(ready(corev1.ConditionUnknown))
	s.wantTaint(true)
	s.change(func(n *corev1.Node) {
		ready(corev1.ConditionTrue)(n)
		n.Status.NodeInfo.BootID = "boot-2"
		n.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/d^v"}
	})
	s.passes(5 * time.Second)
	s.wantTaint(true) // Ready, and no Lease renewed.
	s.state, s.began = machines.Running, time.Unix(2000, 0)
	s.lives(40 * time.Second)
	s.wantTaint(true)
	s.wantEvent("StillOutOfService", "d^v")
	s.change(func(n *corev1.Node) { n.Status.VolumesInUse = nil })
	s.lives(10 * time.Second)
	s.wantTaint(false)
	s.wantEvent("InService")
}

// TestWhatIsNoProof checks that nothing changes without a proof, however long it lasts.
func TestWhatIsNoProof(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scene)
		says   string // empty if no event is expected
	}{
		"it runs":              {func(*scene) {}, "its machine runs"},
		"it is being stopped":  {func(s *scene) { s.state = machines.Stopping }, "may still write"},
		"the provider is away": {func(s *scene) { s.trouble = errors.New("no answer in time") }, "no answer in time"},
		"no such machine": {func(s *scene) { s.state, s.trouble = "", errors.New("there is no instance") },
			"there is no instance"},
		"a state without a name": {func(s *scene) { s.state = "" }, "is not known"},
		"an old answer": {func(s *scene) { s.state, s.began = machines.Stopped, time.Unix(1, 0) },
			"older than one before"},
		"another's Node object": {func(s *scene) {
			s.must(s.api.Delete(s.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
			s.must(s.api.Delete(s.Context(),
				&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: corev1.NamespaceNodeLease}}))
			old := &storagev1.CSINode{}
			s.must(s.api.Get(s.Context(), client.ObjectKey{Name: "one"}, old))
			s.must(s.api.Delete(s.Context(), old.DeepCopy()))
			s.join("one", "2") // Its CSINode is still that of the first.
			old.ResourceVersion = ""
			s.must(s.api.Delete(s.Context(), old.DeepCopy()))
			s.must(s.api.Create(s.Context(), old))
			s.change(func(n *corev1.Node) { n.Status.VolumesInUse = []corev1.UniqueVolumeName{"v"} })
			s.state = machines.Terminated
		}, "of another Node of the same name"},
		"another machine under the name": {func(s *scene) {
			s.change(func(n *corev1.Node) {
				n.Status.NodeInfo.SystemUUID, n.Status.NodeInfo.BootID = "system-2", "boot-2"
				n.Status.VolumesInUse = []corev1.UniqueVolumeName{"v"}
			})
			s.lives(10 * time.Second)
			s.state = machines.Terminated
		}, "another machine runs under the node's name"},
		"a node without the driver": {func(s *scene) {
			s.must(s.api.Delete(s.Context(), &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
			s.manage(s.cache) // This manager has never seen the registration.
			s.state = machines.Stopped
		}, ""},
		"an operator's taint": {func(s *scene) {
			s.change(func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: taintKey, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
			})
			s.state = machines.Stopped
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.lives(90 * time.Second)
			c.change(s)
			before := len(s.taints())
			s.change(ready(corev1.ConditionUnknown))
			s.passes(10 * time.Minute)
			if have := s.taints(); len(have) != before || before == 1 && have[0].Value != "nodeshutdown" {
				t.Errorf("the taints are %+v", have)
			}
			if c.says != "" {
				s.wantEvent("NotProvenOff", c.says)
			}
			if len(s.recorder.Events) > 3 {
				t.Errorf("%d more events were written", len(s.recorder.Events))
			}
		})
	}
}

// TestOperatorsTaintStays checks that an operator's taint stays even when the node works.
func TestOperatorsTaintStays(t *testing.T) {
	s := newScene(t)
	s.change(func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: taintKey, Effect: corev1.TaintEffectNoExecute}}
	})
	s.lives(5 * time.Minute)
	s.wantTaint(true)
}

// TestFirstSign checks that a node whose machine is off is put out of service once it has missed a renewal of its
// Lease, and not before: a live node never is, whatever the provider says.
func TestFirstSign(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	s.state = machines.Stopped
	s.lives(5 * time.Minute)
	s.wantTaint(false)
	s.renew()
	s.passes(12 * time.Second)
	for range 10 { // It is still Ready, and reports no volume in use.
		s.wantTaint(true)
		s.passes(time.Second)
	}
}

// TestRefuted checks that answers about a start of the machine prove nothing after the node has stayed alive in spite
// of them: it runs on another machine, or the provider errs.
func TestRefuted(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	s.change(func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID, n.Status.NodeInfo.BootID = "system-2", "boot-2" })
	s.manage(s.cache) // This manager has not seen that the registration is of the previous machine.
	s.state = machines.Terminated
	s.lives(2 * time.Minute)
	s.passes(5 * time.Minute)
	s.wantTaint(false)
	s.wantEvent("NotProvenOff", "the node lived on")
	s.began = time.Unix(2000, 0)
	s.passes(5 * time.Second)
	s.wantTaint(true)
}

// TestLongLeases checks that a kubelet with a long Lease duration is not silent between renewals.
func TestLongLeases(t *testing.T) {
	s := newScene(t)
	lease, seconds := &coordinationv1.Lease{}, int32(120)
	s.must(s.api.Get(t.Context(), client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: "one"}, lease))
	lease.Spec.LeaseDurationSeconds = &seconds
	s.must(s.api.Update(t.Context(), lease))
	for range 5 {
		s.renew()
		s.passes(30 * time.Second)
	}
	if len(s.recorder.Events) > 0 {
		t.Errorf("an event says %q", <-s.recorder.Events)
	}
	s.state = machines.Stopped
	s.renew()
	s.passes(31 * time.Second)
	s.wantTaint(false)
	s.passes(4 * time.Second)
	s.wantTaint(true)
}

// TestLostAnswer checks that an event is recorded if the taint was written and only the answer was lost.
func TestLostAnswer(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	s.state = machines.Stopped
	s.wrote = func() error { return errors.New("the connection broke") }
	s.passes(20 * time.Second)
	s.wantTaint(true)
	s.wantEvent("OutOfService", "i-one is stopped")
}

// TestRefusedTaint checks that the event reports the API server's refusal of the taint, and not an unknown machine.
func TestRefusedTaint(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	s.state = machines.Stopped
	s.refusing = errors.New("forbidden by a policy")
	s.passes(20 * time.Second)
	s.wantTaint(false)
	s.wantEvent("TaintRefused", "the machine is off", "forbidden by a policy")
}

// TestLateRenewal checks that a slightly late renewal causes a question but no event.
func TestLateRenewal(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	s.renew()
	before := len(s.asked)
	answer := s.provider.answer
	s.provider.answer = func(q machines.Query) (machines.Machine, error) {
		s.clock = s.clock.Add(2 * time.Second) // It is slow.
		return answer(q)
	}
	s.passes(12 * time.Second)
	s.renew()
	s.passes(time.Second)
	if len(s.recorder.Events) > 0 || len(s.asked) == before {
		t.Errorf("%d events were written after %d questions", len(s.recorder.Events), len(s.asked)-before)
	}
}

// TestStandBy checks that a manager that does not lead changes nothing but learns, so that it can act at once when it
// leads.
func TestStandBy(t *testing.T) {
	s := newScene(t)
	elected := make(chan struct{})
	s.elected = elected
	s.lives(90 * time.Second)
	s.state = machines.Stopped
	s.passes(30 * time.Second)
	s.wantTaint(false)
	if len(s.recorder.Events) > 0 {
		t.Errorf("it writes %q", <-s.recorder.Events)
	}
	close(elected)
	s.passes(time.Second)
	s.wantTaint(true)
}

// TestLessonsLeaveRoom checks that only some of many unknown nodes are asked about at a time: the silent one does not
// wait for them.
func TestLessonsLeaveRoom(t *testing.T) {
	s := newScene(t)
	for i := range 2 * lessons {
		s.join(fmt.Sprint("more-", i), fmt.Sprint("uid of ", i))
	}
	for begin := s.clock; ; s.clock = s.clock.Add(10 * time.Second) {
		for i := range 2 * lessons {
			s.renewOf(fmt.Sprint("more-", i))
		}
		s.atOnce, s.asked = 1, nil
		s.must(s.pass(t.Context()))
		if s.clock.Sub(begin) >= s.lag { // From now on they are due.
			break
		}
	}
	about := map[bool]int{}
	for _, q := range s.asked {
		about[q.Node == "i-one"]++
	}
	if about[true] != 1 || about[false] != lessons {
		t.Errorf("asked was about the silent node %d times, and about %d others", about[true], about[false])
	}
}

// TestTwoTaints checks that an operator's taint with the same key does not affect ours.
func TestTwoTaints(t *testing.T) {
	s := newScene(t)
	s.change(func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: taintKey, Value: "x", Effect: corev1.TaintEffectNoSchedule},
			{Key: taintKey, Value: driverName, Effect: corev1.TaintEffectNoExecute}}
	})
	s.lives(time.Minute)
	if have := s.taints(); len(have) != 1 || have[0].Value != "x" {
		t.Errorf("the taints are %+v, want the operator's", have)
	}
}

// TestNewManagerWaits checks that a new manager waits for the lag: an answer may be older than the node's last sign of
// life.
func TestNewManagerWaits(t *testing.T) {
	s := newScene(t)
	s.state = machines.Stopped
	s.passes(58 * time.Second)
	s.wantTaint(false)
	s.passes(20 * time.Second)
	s.wantTaint(true)
}

// TestProviderThatSaysNothing checks that a missing permission is logged while the node still works.
func TestProviderThatSaysNothing(t *testing.T) {
	s := newScene(t)
	var log strings.Builder
	s.watcher.Log = slog.New(slog.NewTextHandler(&log, nil))
	s.trouble = errors.New("not authorized")
	s.lives(3 * time.Minute)
	if failed, told := s.failed(), strings.Count(log.String(), "not authorized"); failed < 5 || told != 1 {
		t.Errorf("%v failures are counted, and it is told %d times: want many, and once", failed, told)
	}
	s.trouble = nil
	s.lives(time.Minute)
	before := s.failed()
	s.lives(time.Minute)
	if after := s.failed(); after != before {
		t.Errorf("%v failures are counted, before it %v", after, before)
	}
	s.wantTaint(false)
}

// failed returns the counter of failures.
func (s *scene) failed() float64 {
	s.Helper()
	registry := prometheus.NewRegistry()
	s.must(registry.Register(s.metrics.failures))
	families, err := registry.Gather()
	s.must(err)
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

// TestComesBackMeanwhile lets the node or its machine come back between the proof and the write.
func TestComesBackMeanwhile(t *testing.T) {
	for name, back := range map[string]func(s *scene){
		"the kubelet reports": func(s *scene) { s.change(func(n *corev1.Node) { n.Status.NodeInfo.BootID = "boot-2" }) },
		"somebody taints it": func(s *scene) {
			s.change(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: taintKey}} })
		},
		"the Node is deleted": func(s *scene) { s.must(s.api.Delete(s.Context(), s.node())) },
		"the Node is another's": func(s *scene) {
			s.must(s.api.Delete(s.Context(), s.node()))
			s.must(s.api.Create(s.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "2"}}))
			s.change(func(*corev1.Node) {}) // The fake API counts versions by name; real ones are unique.
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.lives(90 * time.Second)
			s.state = machines.Stopped
			wrote := false
			s.writing = func() { wrote, s.writing = true, nil; back(s); s.state, s.began = machines.Running, time.Unix(2000, 0) }
			s.passes(time.Minute)
			if !wrote {
				t.Fatal("no taint was about to be written")
			}
			var nodes corev1.NodeList
			s.must(s.api.List(t.Context(), &nodes))
			for _, n := range nodes.Items {
				for _, taint := range n.Spec.Taints {
					if taint.Value == driverName {
						t.Errorf("the node %s was put out of service: %+v", n.UID, taint)
					}
				}
			}
		})
	}
}

// TestRenewsMeanwhile lets the kubelet renew its Lease, unseen by the manager, while the provider is asked.
func TestRenewsMeanwhile(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	s.state = machines.Stopped
	answer := s.provider.answer
	s.provider.answer = func(q machines.Query) (machines.Machine, error) {
		s.clock = s.clock.Add(time.Second)
		s.renew()
		return answer(q)
	}
	s.passes(time.Minute)
	s.wantTaint(false)
	if len(s.asked) == 0 {
		t.Error("nothing was asked")
	}
}

// TestStartedAfterTheFirstProof lets the machine start after the first proof: the second answer shows it.
func TestStartedAfterTheFirstProof(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	times := 0
	s.provider.answer = func(machines.Query) (machines.Machine, error) {
		if times++; times%2 == 1 {
			return machines.Machine{State: machines.Stopped, Began: s.began}, nil
		}
		return machines.Machine{State: machines.Running, Began: s.began.Add(time.Hour)}, nil
	}
	s.passes(5 * time.Minute)
	s.wantTaint(false)
}

// TestNodeIsDeletedFirst checks that nothing is written or remembered if the cloud's own controller deletes the Node of
// a terminated machine first.
func TestNodeIsDeletedFirst(t *testing.T) {
	s := newScene(t)
	s.lives(90 * time.Second)
	s.must(s.api.Delete(t.Context(), s.node()))
	s.state = machines.Terminated
	s.passes(5 * time.Minute)
	var nodes corev1.NodeList
	s.must(s.api.List(t.Context(), &nodes))
	if len(nodes.Items) > 0 || len(s.records) > 0 {
		t.Errorf("there are the nodes %+v and the records %+v", nodes.Items, s.records)
	}
}
