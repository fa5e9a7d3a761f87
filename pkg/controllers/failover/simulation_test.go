package failover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/holds"
	"github.com/stowage-csi/stowage/pkg/machines"
)

// host is the true state of a machine with a node.
type host struct {
	name    string
	past    []moment // all states, oldest first
	up      bool     // the operating system and the kubelet run
	boots   time.Time
	cut     bool            // disconnected from the API server
	boot    int             // number of starts
	renewed time.Time       // time of its Lease
	mounted map[string]bool // volumes that it writes to
	deleted bool            // its Node object is deleted
	gen     int             // number of earlier machines of the name
	works   time.Time       // when it was last up
	fenced  time.Time       // when it was last put out of service
}

// moment is a state of the machine, and the time at which it began.
type moment struct {
	at      time.Time
	machine machines.Machine
}

// id returns the provider's ID of the machine.
func (h *host) id() string { return fmt.Sprintf("i-%s-%d", h.name, h.gen) }

func (h *host) machine() machines.Machine { return h.past[len(h.past)-1].machine }

// then returns the state at a time.
func (h *host) then(at time.Time) machines.Machine {
	m := h.past[0].machine
	for _, one := range h.past {
		if !one.at.After(at) {
			m = one.machine
		}
	}
	return m
}

// disk is a volume that can be attached to one machine at a time, with its pod.
type disk struct {
	name     string
	attached string    // the machine, at the provider
	proof    string    // the name of its VolumeAttachment
	pod      string    // the pod's node; empty while it waits
	stays    bool      // the pod tolerates every taint
	leaving  bool      // the pod is being deleted
	left     time.Time // when the deletion began
}

// story is a cluster with a provider, Kubernetes' controllers, and two managers that both believe they lead.
type story struct {
	*testing.T
	*rand.Rand
	api      client.WithWatch
	clock    time.Time
	hosts    []*host
	disks    []*disk
	managers [2]*watcher
	caches   [2]*lateCache
	fading   bool // answers are late, and may go back in time
	quietNow bool // no more faults
	depth    int  // of nested events
	counts   map[string]int
}

const (
	storyLag  = 20 * time.Second  // maximum age of the provider's answers
	storyWait = 200 * time.Second // how long Kubernetes waits for a kubelet before it detaches by force
)

// lateCache is a manager's cache, with an earlier state.
type lateCache struct {
	client.Client
	nodes         corev1.NodeList
	registrations storagev1.CSINodeList
	leases        coordinationv1.LeaseList
	attachments   storagev1.VolumeAttachmentList
}

func (l *lateCache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *corev1.NodeList:
		l.nodes.DeepCopyInto(list)
	case *storagev1.CSINodeList:
		l.registrations.DeepCopyInto(list)
	case *coordinationv1.LeaseList:
		l.leases.DeepCopyInto(list)
	case *storagev1.VolumeAttachmentList:
		l.attachments.DeepCopyInto(list)
	}
	return nil
}

func (l *lateCache) catchUp(ctx context.Context, api client.Client) error {
	return errors.Join(api.List(ctx, &l.nodes), api.List(ctx, &l.registrations), api.List(ctx, &l.leases),
		api.List(ctx, &l.attachments))
}

func newStory(t *testing.T, seed uint64, fading bool) *story {
	t.Helper()
	s := &story{T: t, Rand: rand.New(rand.NewPCG(seed, 7)), clock: time.Unix(1e6, 0), fading: fading,
		counts: map[string]int{}}
	s.api = newAPI(t)
	for _, name := range []string{"one", "two", "three"} {
		h := &host{name: name, mounted: map[string]bool{}}
		s.hosts = append(s.hosts, h)
		s.switchTo(h, machines.Running, true)
		h.up = true
		s.join(h)
	}
	for i := range 4 {
		s.disks = append(s.disks, &disk{name: fmt.Sprint("disk-", i)})
	}
	for i := range s.managers {
		s.caches[i] = &lateCache{Client: interceptor.NewClient(s.api, interceptor.Funcs{Patch: s.patch, Delete: s.delete})}
		s.must(s.caches[i].catchUp(t.Context(), s.api))
		s.lead(i)
	}
	return s
}

func (s *story) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// lead starts a manager without memory.
func (s *story) lead(i int) {
	o := Options{Driver: s, Log: slog.New(slog.DiscardHandler), Lag: storyLag}
	s.managers[i] = newWatcher(o, s.caches[i], s.api, events.NewFakeRecorder(100_000))
	s.managers[i].now, s.managers[i].atOnce = func() time.Time { return s.clock }, 1
	s.managers[i].elected, s.managers[i].markTime = closed(), time.Millisecond
	if i == 1 && !s.quietNow && s.IntN(2) == 0 {
		s.managers[i].elected = make(chan struct{}) // It still answers the driver.
	}
}

func (s *story) switchTo(h *host, state machines.State, anew bool) {
	m := machines.Machine{State: state, Began: s.clock}
	if !anew {
		m.Began = h.machine().Began
	}
	h.past = append(h.past, moment{s.clock, m})
}

// Driver and Machine implement the provider.
func (s *story) Driver() string { return driverName }

func (s *story) Machine(_ context.Context, q machines.Query) (machines.Machine, error) {
	s.meanwhile()
	name, gen, _ := strings.Cut(strings.TrimPrefix(q.Node, "i-"), "-")
	h := s.host(name)
	switch at := s.clock; {
	case !s.quietNow && s.IntN(10) == 0:
		return machines.Machine{}, errors.New("the provider does not answer")
	case !s.quietNow && s.IntN(20) == 0:
		return machines.Machine{State: "impaired"}, nil
	case gen != fmt.Sprint(h.gen):
		return machines.Machine{State: machines.Terminated}, nil
	case s.fading:
		return h.then(at.Add(-time.Duration(s.Int64N(int64(storyLag))))), nil
	default:
		return h.then(at), nil
	}
}

func (s *story) host(name string) *host {
	return s.hosts[slices.IndexFunc(s.hosts, func(h *host) bool { return h.name == name })]
}

// patch carries out a manager's write after a pause, and judges it.
func (s *story) patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
	options ...client.PatchOption) error {
	s.meanwhile()
	if !s.quietNow && s.IntN(8) == 0 {
		return errors.New("the connection broke before the write")
	}
	before := s.tainted(o.GetName())
	if err := c.Patch(ctx, o, p, options...); err != nil {
		s.counts["writes refused"]++
		return err
	}
	if after := s.tainted(o.GetName()); after && !before {
		s.counts["put out of service"]++
		s.host(o.GetName()).fenced = s.clock
		s.judge(s.host(o.GetName()), "put out of service")
	} else if before && !after {
		s.counts["put into service"]++
		if h := s.host(o.GetName()); !h.works.After(h.fenced) {
			s.Fatalf("VIOLATION: %s was put into service, and it has been off since it was put out of service", h.name)
		}
	}
	if !s.quietNow && s.IntN(8) == 0 {
		return errors.New("the connection broke after the write")
	}
	return nil
}

// judge checks an action on a node that is proven to be off, at the time of the action.
func (s *story) judge(h *host, what string) {
	switch {
	case h.up && len(h.mounted) > 0:
		s.Fatalf("VIOLATION: %s was %s while it writes to %v", h.name, what, h.mounted)
	case h.up && !h.cut:
		s.Fatalf("VIOLATION: %s was %s while it works", h.name, what)
	case h.machine().State.Off():
	case !s.fading:
		s.Fatalf("VIOLATION: %s was %s, and its machine is %s", h.name, what, h.machine().State)
	default:
		s.counts[what+" while it starts again, with nothing mounted"]++
	}
}

// delete carries out a manager's deletion of a pod or a VolumeAttachment.
func (s *story) delete(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
	s.meanwhile()
	if a, ok := o.(*storagev1.VolumeAttachment); ok {
		return s.free(ctx, c, a, options...)
	}
	pod := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), pod); err != nil {
		return err
	}
	if pod.UID != o.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("another UID"))
	}
	if pod.DeletionTimestamp == nil {
		s.Fatalf("VIOLATION: %s is deleted, and nobody has evicted it", pod.Name)
	}
	s.counts["pods deleted"]++
	s.judge(s.host(pod.Spec.NodeName), "relieved of a pod")
	s.forget(pod.Name)
	return nil
}

// free carries out a manager's deletion of a VolumeAttachment.
func (s *story) free(ctx context.Context, c client.WithWatch, a *storagev1.VolumeAttachment,
	options ...client.DeleteOption) error {
	if err := c.Delete(ctx, a, options...); err != nil {
		return err
	}
	h, id := s.host(a.Spec.NodeName), a.Annotations[nodeIDNote]
	if state := h.machine().State; id == h.id() && (state != machines.Terminated || s.node(h.name) != nil) {
		s.Fatalf("VIOLATION: a volume of %s was freed, its machine is %s, and it has a Node: %t", h.name, state,
			s.node(h.name) != nil)
	}
	pod := &corev1.Pod{}
	err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: a.Annotations["disk"]}, pod)
	if err == nil && id == h.id() && pod.Spec.NodeName == h.name {
		s.Fatalf("VIOLATION: a volume of %s was freed, and Kubernetes wants it there", h.name)
	}
	s.counts["VolumeAttachments deleted"]++
	return nil
}

// forget removes a pod.
func (s *story) forget(name string) {
	pod := &corev1.Pod{}
	err := s.api.Get(s.Context(), client.ObjectKey{Namespace: "ns", Name: name}, pod)
	if err == nil {
		pod.Finalizers = nil
		if err = s.api.Update(s.Context(), pod); err == nil && pod.DeletionTimestamp == nil {
			err = s.api.Delete(s.Context(), pod)
		}
	}
	s.must(client.IgnoreNotFound(err))
}

// meanwhile lets time pass in the middle of an action, sometimes a long time.
func (s *story) meanwhile() {
	if s.depth > 0 || !s.fading || s.quietNow {
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	steps := s.IntN(2)
	if s.IntN(40) == 0 {
		steps = 30 + s.IntN(60)
		s.counts["managers that slept"]++
	}
	for range steps {
		s.step()
	}
}

func (s *story) node(name string) *corev1.Node {
	node := &corev1.Node{}
	if s.api.Get(s.Context(), client.ObjectKey{Name: name}, node) != nil {
		return nil
	}
	return node
}

func (s *story) tainted(name string) bool {
	node := s.node(name)
	return node != nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintKey })
}

// join writes the objects that a kubelet creates at its first start.
func (s *story) join(h *host) {
	s.counts["nodes that joined"]++
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.name,
		UID: types.UID(fmt.Sprintf("%s-%d", h.name, s.counts["nodes that joined"]))}}
	s.must(s.api.Create(s.Context(), node))
	registration := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: h.name,
		OwnerReferences: []metav1.OwnerReference{{Kind: "Node", UID: node.UID}}}}
	registration.Spec.Drivers = []storagev1.CSINodeDriver{{Name: driverName, NodeID: h.id()}}
	_ = s.api.Delete(s.Context(), registration.DeepCopy())
	s.must(s.api.Create(s.Context(), registration))
	h.deleted = false
	s.report(h)
	s.renew(h)
}

// report writes the kubelet's status.
func (s *story) report(h *host) {
	node := s.node(h.name)
	node.Status.NodeInfo.BootID = fmt.Sprint(h.name, h.boot)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.VolumesInUse = nil
	for _, d := range s.disks {
		if h.mounted[d.name] {
			node.Status.VolumesInUse = append(node.Status.VolumesInUse, s.managers[0].reported(d.name))
		}
	}
	s.must(s.api.Status().Update(s.Context(), node))
}

func (s *story) renew(h *host) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: corev1.NamespaceNodeLease}}
	missing := s.api.Get(s.Context(), client.ObjectKeyFromObject(lease), lease) != nil
	lease.Spec.RenewTime = &metav1.MicroTime{Time: s.clock}
	if missing {
		s.must(s.api.Create(s.Context(), lease))
	} else {
		s.must(s.api.Update(s.Context(), lease))
	}
	h.renewed = s.clock
}

// step runs a second of the world without the managers.
func (s *story) step() {
	s.clock = s.clock.Add(time.Second)
	for _, h := range s.hosts {
		s.run(h)
		seldom := 60
		if h.up && s.tainted(h.name) { // It is back, and may fail again.
			seldom = 15
		}
		if !s.quietNow && s.IntN(seldom) == 0 {
			s.befall(h)
		}
	}
	s.kubernetes()
	for _, d := range s.disks {
		s.use(d)
	}
	s.check()
}

// run runs a second of a machine.
func (s *story) run(h *host) {
	switch {
	case h.machine().State == machines.Stopping && s.IntN(5) == 0:
		h.up, h.mounted = false, map[string]bool{}
		s.switchTo(h, machines.Stopped, false)
	case h.machine().State == machines.Running && !h.up && !s.clock.Before(h.boots):
		h.up = true
		h.boot++
		for _, d := range s.disks { // The kubelet restarts the pods that the API server still has for it.
			if d.pod == h.name && !d.leaving && d.attached == h.id() && !h.cut {
				h.mounted[d.name] = true
			}
		}
	}
	if h.up {
		h.works = s.clock
	}
	if !h.up || h.cut {
		return
	}
	if h.deleted {
		s.join(h)
	}
	node := s.node(h.name)
	if s.clock.Sub(h.renewed) >= 10*time.Second {
		s.renew(h)
	}
	if node.Status.NodeInfo.BootID != fmt.Sprint(h.name, h.boot) ||
		node.Status.Conditions[0].Status != corev1.ConditionTrue || len(node.Status.VolumesInUse) != len(h.mounted) {
		s.renew(h)
		s.report(h)
	}
}

// befall draws a fault or change of a machine.
func (s *story) befall(h *host) {
	h.boots = s.clock.Add(time.Duration(5+s.IntN(25)) * time.Second)
	switch what := s.IntN(9); {
	case what == 0 && h.machine().State == machines.Running: // It loses power, and the provider knows at once.
		h.up, h.mounted = false, map[string]bool{}
		s.switchTo(h, machines.Stopped, false)
		s.counts["lost power"]++
	case what == 1 && h.machine().State == machines.Running:
		s.switchTo(h, machines.Stopping, false)
		s.counts["stopped"]++
	case what <= 3 && h.machine().State == machines.Stopped:
		s.switchTo(h, machines.Running, true)
		s.counts["started again"]++
	case what <= 3 && h.machine().State == machines.Terminated && h.deleted:
		s.replace(h)
	case what == 4 && h.machine().State == machines.Running: // It crashes and starts, and the provider sees nothing.
		h.up, h.mounted = false, map[string]bool{}
		s.counts["crashed"]++
	case what == 5:
		h.cut = !h.cut
		s.counts["cut off or back"]++
	case what == 6 && h.machine().State.Off() && !h.deleted && !h.cut: // Like the cloud's own controller.
		s.deleteNode(h)
	case what == 8 && h.up && h.cut && !h.deleted: // Like a person who believes that it is dead.
		s.deleteNode(h)
		s.counts["Nodes deleted while they write"] += min(1, len(h.mounted))
	case what == 7 && h.machine().State == machines.Running && !h.cut: // Its end may be seen before its silence.
		h.up, h.mounted = false, map[string]bool{}
		s.switchTo(h, machines.Terminated, false)
		if s.counts["terminated"]++; s.IntN(2) == 0 {
			s.deleteNode(h)
		}
	}
}

func (s *story) deleteNode(h *host) {
	s.must(client.IgnoreNotFound(s.api.Delete(s.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.name}})))
	h.deleted = true
	s.counts["Nodes deleted by others"]++
}

// replace starts another machine under the name of one that is terminated.
func (s *story) replace(h *host) {
	s.deleteNode(h)
	h.gen, h.past, h.boots = h.gen+1, nil, s.clock.Add(5*time.Second) // The name is free for a while.
	h.past = append(h.past, moment{s.clock, machines.Machine{State: machines.Running, Began: s.clock}})
	s.counts["replaced"]++
}

// kubernetes runs Kubernetes' node controller.
func (s *story) kubernetes() {
	for _, h := range s.hosts {
		node := s.node(h.name)
		if node == nil || s.clock.Sub(h.renewed) < 40*time.Second ||
			node.Status.Conditions[0].Status != corev1.ConditionTrue {
			continue
		}
		node.Status.Conditions[0].Status = corev1.ConditionUnknown
		s.must(s.api.Status().Update(s.Context(), node))
	}
}

// works reports whether Kubernetes can run a pod on a node.
func (s *story) works(h *host) bool {
	node := s.node(h.name)
	return node != nil && node.Status.Conditions[0].Status == corev1.ConditionTrue && !s.tainted(h.name)
}

// use runs the scheduler, the kubelets and the attach-detach controller for a volume and its pod.
func (s *story) use(d *disk) {
	if d.pod == "" {
		s.schedule(d)
		return
	}
	h, node := s.host(d.pod), s.node(d.pod)
	silent := node == nil || node.Status.Conditions[0].Status != corev1.ConditionTrue
	often := 100
	if d.stays && h.cut && s.tainted(h.name) { // A person deletes it, and the kubelet does not know.
		often = 20
	}
	evicted := s.tainted(h.name) && (!d.stays || s.quietNow)
	if !d.leaving && (evicted || silent && node == nil || !s.quietNow && s.IntN(often) == 0) {
		d.leaving, d.left = true, s.clock
		s.must(s.api.Delete(s.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: d.name}}))
	}
	if d.leaving && node == nil { // No kubelet ends the pods of a node that is gone.
		s.forget(d.name)
	}
	gone := silent || s.api.Get(s.Context(), client.ObjectKey{Namespace: "ns", Name: d.name}, &corev1.Pod{}) != nil
	switch {
	case !d.leaving && h.up && !h.cut && d.attached == h.id():
		h.mounted[d.name] = true
	case !d.leaving && d.attached == "" && s.works(h):
		s.attach(d, h)
	case d.leaving && h.up && !h.cut: // The kubelet ends the pod and unmounts.
		delete(h.mounted, d.name)
		s.detach(d, h)
	case d.leaving && gone && (s.tainted(h.name) || s.freed(d) || s.clock.Sub(d.left) > storyWait):
		s.force(d, h)
	}
}

// force detaches without the kubelet, as Kubernetes does. The driver asks a manager.
func (s *story) force(d *disk, from *host) {
	if d.attached == "" { // It was only bound.
		s.detach(d, from)
		return
	}
	s.depth++ // No events between the answer and the detachment.
	defer func() { s.depth-- }()
	hold, err := s.managers[s.IntN(2)].Hold(s.Context(), holds.Query{Volume: d.name, Node: d.attached})
	if err != nil || hold.Held {
		s.counts["held"]++
		return
	}
	s.detach(d, from)
	s.counts["detached by force"]++
}

// attach writes the VolumeAttachment, and attaches.
func (s *story) attach(d *disk, to *host) {
	s.counts["attached"]++
	d.proof = fmt.Sprintf("%s-%d", d.name, s.counts["attached"])
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: d.proof, Finalizers: []string{"story/attached"},
		Annotations: map[string]string{nodeIDNote: to.id(), "disk": d.name}}}
	a.Spec.Attacher, a.Spec.NodeName = driverName, to.name
	s.must(s.api.Create(s.Context(), a))
	d.attached = to.id()
}

// freed reports whether the VolumeAttachment was deleted.
func (s *story) freed(d *disk) bool {
	a := &storagev1.VolumeAttachment{}
	err := s.api.Get(s.Context(), client.ObjectKey{Name: d.proof}, a)
	s.must(client.IgnoreNotFound(err))
	return err != nil || a.DeletionTimestamp != nil
}

func (s *story) detach(d *disk, from *host) {
	if from.up && from.mounted[d.name] {
		s.Fatalf("VIOLATION: %s is detached from %s, which writes to it", d.name, from.name)
	}
	if d.attached != "" {
		d.attached = ""
		a := &storagev1.VolumeAttachment{}
		s.must(s.api.Get(s.Context(), client.ObjectKey{Name: d.proof}, a))
		a.Finalizers = nil
		s.must(s.api.Update(s.Context(), a))
		s.must(client.IgnoreNotFound(s.api.Delete(s.Context(), a)))
	}
	d.pod, d.leaving = "", false
	s.forget(d.name)
}

func (s *story) schedule(d *disk) {
	var able []*host
	for _, h := range s.hosts {
		if s.works(h) {
			able = append(able, h)
		}
	}
	if len(able) > 0 {
		d.pod, d.stays = able[s.IntN(len(able))].name, s.IntN(3) == 0
		s.counts["pods started"]++
		s.must(s.api.Create(s.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: d.name, Finalizers: []string{"story/waits"},
				UID: types.UID(fmt.Sprint(d.name, s.counts["pods started"]))},
			Spec: corev1.PodSpec{NodeName: d.pod, Volumes: claims()},
		}))
	}
}

// check checks that no two machines write to the same volume, and that it is attached to its writer.
func (s *story) check() {
	for _, d := range s.disks {
		var writers []string
		for _, h := range s.hosts {
			if h.up && h.mounted[d.name] {
				writers = append(writers, h.id())
			}
		}
		if len(writers) > 1 || len(writers) == 1 && d.attached != writers[0] {
			s.Fatalf("VIOLATION: %s is written to by %q and attached to %q", d.name, writers, d.attached)
		}
	}
	s.counts["observations"]++
}

func (s *story) manage() {
	for i, m := range s.managers {
		if s.quietNow || s.IntN(4) > 0 { // Otherwise its cache does not change.
			s.must(s.caches[i].catchUp(s.Context(), s.api))
		}
		if !s.quietNow && s.IntN(200) == 0 {
			s.lead(i)
			s.counts["managers that started anew"]++
			continue
		}
		s.must(m.pass(s.Context()))
		s.must(m.freeLost(s.Context()))
	}
}

// live runs a history with faults, and then checks that all recovers without faults.
func (s *story) live(seconds int) {
	for range seconds {
		s.step()
		s.manage()
	}
	s.quietNow, s.fading = true, false
	for _, h := range s.hosts {
		h.cut = false
	}
	first := s.hosts[0] // One node must be able to run the pods.
	switch first.machine().State {
	case machines.Running:
	case machines.Terminated:
		s.replace(first)
	default:
		s.switchTo(first, machines.Running, true)
	}
	for range 300 {
		s.step()
		s.manage()
	}
	for _, h := range s.hosts {
		off := h.machine().State.Off()
		if node := s.node(h.name); node != nil && s.tainted(h.name) != off {
			s.Errorf("VIOLATION: at rest %s is %s, and out of service: %t", h.name, h.machine().State, !off)
		}
	}
	for _, d := range s.disks {
		if d.pod == "" || !s.host(d.pod).mounted[d.name] {
			s.Errorf("VIOLATION: at rest nothing uses %s: its pod is on %q", d.name, d.pod)
		}
	}
}

// TestHistories runs random histories, first with a provider whose answers are true or missing, then with one whose
// answers are late and may go back in time, and with managers that pause in the middle of an action. Two machines never
// write to the same volume, and a machine that can write is never put out of service.
func TestHistories(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() { // The gate's run with the race detector has no time for all, and needs no rare interleavings.
		seeds = 1
	}
	for _, fading := range []bool{false, true} {
		t.Run(map[bool]string{false: "true answers", true: "late answers"}[fading], func(t *testing.T) {
			all := map[string]int{}
			for seed := range seeds {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					s := newStory(t, seed, fading)
					s.live(450)
					for what, n := range s.counts {
						all[what] += n
					}
				})
			}
			t.Log(all)
			wanted := []string{"put out of service", "put into service", "detached by force"}
			if !testing.Short() {
				wanted = append(wanted, "cut off or back", "pods deleted", "VolumeAttachments deleted", "held")
			}
			for _, what := range wanted {
				if all[what] == 0 {
					t.Errorf("nothing was %s: the histories show nothing", what)
				}
			}
		})
	}
}
