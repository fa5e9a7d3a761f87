package recycler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// reported returns a LocalVolume with a report of its node.
func reported(use *v1alpha1.VolumeUse) v1alpha1.LocalVolume {
	o := v1alpha1.LocalVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "local", Name: "handle"}}
	o.Spec.Node, o.Status.Use = "node", use
	return o
}

// TestReports checks that a scrub neither begins nor ends before each node of the volume has reported, since the
// question of this state of the scrub, that it does not use the volume.
func TestReports(t *testing.T) {
	const question = "scrub/Scrubbing"
	free := reported(&v1alpha1.VolumeUse{Question: question})
	earlier := reported(&v1alpha1.VolumeUse{Question: "scrub/Failed"})
	used := reported(&v1alpha1.VolumeUse{Question: question, InUse: true, Message: "staged at /x"})
	silent := reported(nil)
	for name, c := range map[string]struct {
		volumes []v1alpha1.LocalVolume
		noNode  bool
		want    string // part of the reason to wait; "" to go on
	}{
		"no report is needed":       {nil, false, ""},
		"not in use":                {[]v1alpha1.LocalVolume{free}, false, ""},
		"no report":                 {[]v1alpha1.LocalVolume{silent}, false, "the node node has not reported yet"},
		"a report before the scrub": {[]v1alpha1.LocalVolume{earlier}, false, "the LocalVolume local/handle"},
		"in use":                    {[]v1alpha1.LocalVolume{used}, false, "reported last that it uses the volume: staged"},
		"no report of one of two":   {[]v1alpha1.LocalVolume{free, silent}, false, "has not reported yet"},
		"a node that is gone":       {[]v1alpha1.LocalVolume{silent}, true, ""},
	} {
		for next, v := range map[step]view{
			makeClaim: begun(scrubbing, nothingLeft, unpointed),
			giveBack:  begun(clean, nothingLeft, func(v *view) { v.noted = true }),
		} {
			v.users.reports = reports{question: question, volumes: c.volumes}
			if !c.noNode {
				v.users.nodes = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node"}}}
			}
			if c.want != "" {
				next = wait
			}
			if have, why := plan(v); have != next || !strings.Contains(why, c.want) {
				t.Errorf("%s: the next step is %q (%s), want %q (%s)", name, have, why, next, c.want)
			}
		}
	}
}

// TestReportsThatCannotBeRead checks that a volume waits, with an event, while its reports cannot be read, for example
// with the rights of an earlier version. In a cluster without LocalVolumes, or with a volume of another driver, no
// report is needed.
func TestReportsThatCannotBeRead(t *testing.T) {
	volumes := schema.GroupResource{Group: v1alpha1.Group, Resource: "localvolumes"}
	for name, c := range map[string]struct {
		driver string
		cause  error
		want   string
	}{
		"no right":                {"driver", apierrors.NewForbidden(volumes, "", errCut), "the LocalVolume cannot be read"},
		"no such resource":        {"driver", &meta.NoKindMatchError{}, ""},
		"nothing":                 {"driver", nil, ""},
		"a right, another driver": {"other", apierrors.NewForbidden(volumes, "", errCut), ""},
	} {
		r, v, told := telling(t, record{Name: "scrub", State: scrubbing}, interceptor.Funcs{
			List: func(ctx context.Context, api client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
				if _, ok := into.(*v1alpha1.LocalVolumeList); ok {
					return c.cause
				}
				return api.List(ctx, into, options...)
			},
		})
		r.LocalDriver = c.driver
		now := time.Unix(1000, 0)
		r.memory.now = func() time.Time { return now }
		for range 2 {
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			now = now.Add(course)
		}
		claim, err := find(t.Context(), r.live, ownNamespace, "scrub", &corev1.PersistentVolumeClaim{})
		if err != nil || (claim != nil) != (c.want == "") {
			t.Errorf("%s: the scrub has begun: %t, %v", name, claim != nil, err)
		}
		if c.want == "" {
			continue
		}
		if seconds := r.metrics.waits.longest("driver"); len(told) != 1 || seconds <= 0 {
			t.Fatalf("%s: there are %d events, and the longest wait is %v", name, len(told), seconds)
		}
		if text := <-told; !strings.HasPrefix(text, "Normal RecycleWaits ") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestUnknownForAMoment checks that one API server that does not know LocalVolumes does not make a volume count as one
// without a master.
func TestUnknownForAMoment(t *testing.T) {
	looks := 0
	r, v, _ := telling(t, record{Name: "scrub", State: scrubbing}, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			list, ok := into.(*v1alpha1.LocalVolumeList)
			if !ok {
				return api.List(ctx, into, options...)
			}
			if looks++; looks%2 == 1 {
				return &meta.NoKindMatchError{}
			}
			list.Items = []v1alpha1.LocalVolume{reported(nil)}
			return nil
		},
	}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	r.LocalDriver = "driver"
	now := time.Unix(1000, 0)
	r.memory.now = func() time.Time { return now }
	for range 6 {
		waitsFor(t, r, v.Name)
		now = now.Add(course)
	}
}

// TestSilentNodeIsCheap checks that volumes that wait for the report of one node share the lists of the cluster.
func TestSilentNodeIsCheap(t *testing.T) {
	lists := 0
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	r, v, _ := telling(t, record{Name: "scrub", State: scrubbing}, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			switch list := into.(type) {
			case *v1alpha1.LocalVolumeList:
				list.Items = []v1alpha1.LocalVolume{reported(nil)}
				return nil
			case *corev1.NodeList:
				lists++
			}
			return api.List(ctx, into, options...)
		},
	}, node)
	r.LocalDriver = "driver"
	for range 5 {
		if waitsFor(t, r, v.Name); !strings.Contains(r.memory.volumes[v.Name].why, "has not reported yet") {
			t.Errorf("the volume waits since %q", r.memory.volumes[v.Name].why)
		}
	}
	if lists != 1 {
		t.Errorf("nodes are listed %d times, want once in a moment", lists)
	}
}

// TestReportsThatChange checks that an event tells of a volume in use although its node's report changes with each
// look, and that a node cannot cause more than an event a minute.
func TestReportsThatChange(t *testing.T) {
	looks := 0
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	r, v, told := telling(t, record{Name: "scrub", State: scrubbing}, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if list, ok := into.(*v1alpha1.LocalVolumeList); ok {
				looks++
				list.Items = []v1alpha1.LocalVolume{reported(&v1alpha1.VolumeUse{Question: "scrub/Scrubbing", InUse: true,
					Message: fmt.Sprint("at /", looks, "\x1b[2J\n")})}
				return nil
			}
			return api.List(ctx, into, options...)
		},
	}, node)
	r.LocalDriver = "driver"
	now := time.Unix(1000, 0)
	r.memory.now = func() time.Time { return now }
	for range 40 {
		waitsFor(t, r, v.Name)
		now = now.Add(course / 4)
	}
	if number := len(told); number == 0 || number > 10 {
		t.Fatalf("in ten minutes there are %d events", number)
	}
	if text := <-told; strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("the event is %q", text)
	}
}

// TestSilentNodeIsNoFailure checks that a volume waits for the report of its node without a limit. The limit of a scrub
// begins when the scrub takes the volume.
func TestSilentNodeIsNoFailure(t *testing.T) {
	now := time.Unix(1000, 0)
	r := &reconciler{Options: Options{Deadline: time.Hour}, memory: newMemory(func() time.Time { return now })}
	silent := begun(scrubbing, nothingLeft, func(v *view) { v.record.Claim = "" })
	for range 2 {
		if next, why := r.pace(silent, wait, "the node is silent"); next != wait {
			t.Errorf("the next step is %s: %s", next, why)
		}
		now = now.Add(100 * time.Hour)
	}
	for _, want := range []step{wait, broke} {
		if next, why := r.pace(begun(scrubbing), wait, "the pod does not run"); next != want {
			t.Errorf("with the volume the next step is %s: %s", next, why)
		}
		now = now.Add(2 * time.Hour)
	}
}
