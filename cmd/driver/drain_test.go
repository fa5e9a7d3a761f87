package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLeaving: the answers are Kubernetes' own objects, so that no field name is misread.
func TestLeaving(t *testing.T) {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	for name, row := range map[string]struct {
		edit func(*corev1.Node)
		want string
	}{
		"nothing":  {func(*corev1.Node) {}, ""},
		"cordoned": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, "it is cordoned"},
		"being deleted": {func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
			"it is being deleted"},
		"Karpenter 1":       {tainted("karpenter.sh/disrupted"), "Karpenter removes it"},
		"Karpenter 0":       {tainted("karpenter.sh/disruption"), "Karpenter removes it"},
		"scaled down":       {tainted("ToBeDeletedByClusterAutoscaler"), "the Cluster Autoscaler removes it"},
		"out of service":    {tainted(corev1.TaintNodeOutOfService), "it is out of service"},
		"another taint":     {tainted("DeletionCandidateOfClusterAutoscaler"), ""},
		"shutting down":     {is(1, corev1.ConditionFalse), "it is not Ready"},
		"silent":            {is(1, corev1.ConditionUnknown), "it is not Ready"},
		"another condition": {is(0, corev1.ConditionTrue), ""},
	} {
		node := theNode()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
			ready}
		row.edit(&node)
		if got := parsed(t, node).leaving(); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

func tainted(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}, {Key: key}}
	}
}

func is(condition int, status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Conditions[condition].Status = status }
}

func parsed(t *testing.T, node corev1.Node) object {
	t.Helper()
	text, err := json.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	o, err := parseObject(bytes.NewReader(text), "Node")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestVolumesOfNode(t *testing.T) {
	node := theNode()
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/d^vol-2", "kubernetes.io/csi/d2^vol-3"}
	node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/csi/d^vol-2"},
		{Name: "kubernetes.io/csi/d^vol-1"}, {Name: "kubernetes.io/aws-ebs/d^vol-4"}}
	if got := parsed(t, node).volumes("d"); !slices.Equal(got, []string{"vol-1", "vol-2"}) {
		t.Errorf("got %q", got)
	}
}

// TestDrainWaits: the driver ends at once, unless its node is being drained and has volumes of the driver. It ends at
// the limit in any case.
func TestDrainWaits(t *testing.T) {
	gone, denied := unreachable{errors.New("out of reach")}, errors.New("may not be read")
	busy, busier, idle := drained(t, "vol-1"), drained(t, "vol-1", "vol-2"), drained(t)
	steady := busy
	steady.Spec.Unschedulable = false
	for name, row := range map[string]struct {
		limit   time.Duration
		answers []any // one for each look; the last one repeats
		want    time.Duration
		says    string
	}{
		"not asked for":       {0, []any{busy}, 0, ""},
		"not being drained":   {time.Minute, []any{steady}, 0, ""},
		"without volumes":     {time.Minute, []any{idle}, 0, ""},
		"until they are gone": {time.Minute, []any{busy, busy, busy, idle}, 6 * time.Second, "serving on [vol-1]"},
		"some are gone": {time.Minute, []any{busier, busy, idle}, 4 * time.Second,
			"serving on [vol-1 vol-2]; serving on [vol-1]"},
		"until it is called off": {time.Minute, []any{busy, steady}, 2 * time.Second, "serving on [vol-1]"},
		"never":                  {time.Minute, []any{busy}, time.Minute, "serving on [vol-1]; stopping although [vol-1]"},
		"out of reach at first": {time.Minute, []any{gone, gone, busy, idle}, 6 * time.Second,
			"the node cannot; serving on [vol-1]"},
		"out of reach": {time.Minute, []any{gone}, 20 * time.Second, "the node cannot; it is not"},
		"no answer":    {time.Minute, []any{silence{}}, 22 * time.Second, "the node cannot; it is not"},
		"no right":     {time.Minute, []any{denied}, 0, "it is not"},
		"out of reach in the middle": {time.Minute, []any{busy, gone, denied, gone, idle}, 8 * time.Second,
			"serving on [vol-1]; the node cannot"},
		"silent at the end": {time.Minute, []any{busy, silence{}}, time.Minute,
			"serving on [vol-1]; the node cannot; stopping although [vol-1]"},
		"a very short limit": {time.Second, []any{silence{}}, time.Second, "it is not"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said messages
				d := drain{"d", row.limit, answering(row.answers), slog.New(&said)}
				ctx, signal := context.WithCancel(t.Context())
				serving, end := d.outlast(ctx)
				defer end()
				<-time.After(time.Minute)
				if serving.Err() != nil {
					t.Fatal("it ended without a signal")
				}
				begin := time.Now()
				signal()
				<-serving.Done()
				if took := time.Since(begin); took != row.want {
					t.Errorf("it ended after %s, want %s", took, row.want)
				}
				if got := strings.Join(said.all, "; "); got != row.says {
					t.Errorf("the log says %q, want %q", got, row.says)
				}
			})
		})
	}
}

// TestDrainIsCalledOff: if the server ends for another reason, the wait ends.
func TestDrainIsCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said messages
		d := drain{"d", time.Hour, answering([]any{drained(t, "vol-1")}), slog.New(&said)}
		ctx, signal := context.WithCancel(t.Context())
		_, end := d.outlast(ctx)
		signal()
		synctest.Wait()
		end() // The bubble ends with everything in it.
		synctest.Wait()
		if len(said.all) != 1 {
			t.Errorf("the log says %q", said.all)
		}
	})
}

func drained(t *testing.T, volumes ...string) object {
	t.Helper()
	node := theNode()
	node.Spec.Unschedulable = true
	for _, v := range volumes {
		node.Status.VolumesInUse = append(node.Status.VolumesInUse, corev1.UniqueVolumeName("kubernetes.io/csi/d^"+v))
	}
	return parsed(t, node)
}

// messages records the first words of the log messages, and the volumes that they name.
type messages struct {
	slog.Handler

	all []string
}

func (m *messages) Enabled(context.Context, slog.Level) bool { return true }

func (m *messages) Handle(_ context.Context, r slog.Record) error {
	words := strings.Fields(r.Message)
	said := strings.Join(words[:min(len(words), 3)], " ")
	if words[0] == "serving" || words[0] == "stopping" {
		said = strings.Join(words[:2], " ")
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "volumes" {
			said += fmt.Sprint(" ", a.Value)
		}
		return true
	})
	m.all = append(m.all, said)
	return nil
}

// silence is the answer that never comes.
type silence struct{}

func answering(answers []any) func(context.Context) (object, error) {
	return func(ctx context.Context) (object, error) {
		answer := answers[0]
		answers = answers[min(1, len(answers)-1):]
		if answer == (silence{}) {
			<-ctx.Done()
			return object{}, unreachable{ctx.Err()}
		}
		if err, failed := answer.(error); failed {
			return object{}, err
		}
		node, ok := answer.(object)
		if !ok {
			panic(fmt.Sprintf("%T is no answer", answer))
		}
		return node, nil
	}
}

// TestServesWhileDrained tells the whole driver to stop on a node that is being drained.
func TestServesWhileDrained(t *testing.T) {
	node := theNode()
	node.Spec.Unschedulable = true
	node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/csi/memory.csi.stowage.dev^vol-1"}}
	var mu sync.Mutex
	asked := make(chan struct{}, 100)
	inPodOn(t, func() corev1.Node {
		mu.Lock()
		defer mu.Unlock()
		select {
		case asked <- struct{}{}:
		default:
		}
		return node
	})
	conn, stop := served(t, "--backend=memory", "--node-name="+nodeName, "--drain-grace=1h")
	probe := func() {
		t.Helper()
		if _, err := csi.NewIdentityClient(conn).Probe(t.Context(), &csi.ProbeRequest{},
			grpc.WaitForReady(true)); err != nil {
			t.Error(err)
		}
	}
	probe()
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	await(t, asked)
	probe()
	await(t, asked)
	probe()
	mu.Lock()
	node.Status.VolumesAttached = nil
	mu.Unlock()
	await(t, ended)
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing happens")
	}
}
