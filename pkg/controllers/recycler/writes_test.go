package recycler

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// writes is the file with the writes of the recycler. deploy/tests checks that the policies allow each of them.
const writes = "testdata/writes.json"

// TestMain adds the flag -update.
func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite testdata/writes.json")
	os.Exit(m.Run())
}

// write is a successful write of a recycler: the object before and after it, without one if there is none.
type write struct {
	Form     string `json:"form"`
	Resource string `json:"resource"`
	Sub      string `json:"sub,omitempty"`
	Before   any    `json:"before,omitempty"`
	After    any    `json:"after,omitempty"`
}

// recorded returns a client that also notes its writes.
func (s *simulation) recorded(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return s.record(o, "", o, func() error { return c.Create(ctx, o) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return s.record(o, "", o, func() error { return c.Update(ctx, o, options...) })
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
			return s.record(o, "status", o, func() error { return c.Status().Update(ctx, o) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			return s.record(o, "", nil, func() error { return c.Delete(ctx, o) })
		},
	})
}

// record notes a write if it is the first of its form and succeeds.
func (s *simulation) record(o client.Object, sub string, after client.Object, do func() error) error {
	before, _ := o.DeepCopyObject().(client.Object)
	if s.api.Get(s.Context(), client.ObjectKeyFromObject(o), before) != nil {
		before = nil
	}
	if after != nil {
		after, _ = after.DeepCopyObject().(client.Object)
	}
	for _, one := range []client.Object{before, after} { // The fake API server takes the time of the day.
		if one != nil && one.GetDeletionTimestamp() != nil {
			one.SetDeletionTimestamp(&metav1.Time{Time: s.clock})
		}
	}
	err := do()
	one := &write{Resource: resourceOf(o), Sub: sub}
	if before != nil {
		one.Before = before
	}
	if after != nil {
		one.After = after
	}
	one.Form = one.Resource + sub + ": " + form(before) + " -> " + form(after)
	if s.written[one.Form] == nil && err == nil {
		s.written[one.Form] = one
	}
	return err
}

func resourceOf(o client.Object) string {
	switch o.(type) {
	case *corev1.PersistentVolume:
		return "persistentvolumes"
	case *corev1.PersistentVolumeClaim:
		return "persistentvolumeclaims"
	case *corev1.Pod:
		return "pods"
	}
	return "serviceaccounts"
}

// form describes an object by the fields that the recycler changes.
func form(o client.Object) string {
	if o == nil {
		return "none"
	}
	v, is := o.(*corev1.PersistentVolume)
	if !is {
		return fmt.Sprintf("%d finalizers", len(o.GetFinalizers()))
	}
	text, claim := string(v.Status.Phase), ""
	if one, err := readRecord(v); err == nil && one != nil {
		text += " " + string(one.State)
	}
	if v.Spec.ClaimRef != nil {
		claim = v.Spec.ClaimRef.Namespace
	}
	return fmt.Sprintf("%s of %q", text, claim)
}

// TestWrites checks that the file has the first write of each form in some runs of the simulation. -update writes
// it anew.
func TestWrites(t *testing.T) {
	all := map[string]*write{}
	for seed := range uint64(30) {
		s := newSimulation(t, seed)
		s.attempts = 2
		s.start(0)
		s.start(1)
		s.touch("node", &s.isDown, false)
		s.touch("other", &s.isOtherDown, false)
		for range 250 {
			s.happen()
		}
		for name, one := range s.written {
			if all[name] == nil {
				all[name] = one
			}
		}
	}
	var list []*write
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	text, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(writes, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if golden, err := os.ReadFile(writes); err != nil || !bytes.Equal(golden, text) {
		t.Errorf("%s is not what the recycler writes now (%v): write it anew with -update, and look at the "+
			"policies in deploy/kubernetes/recycler", writes, err)
	}
}
