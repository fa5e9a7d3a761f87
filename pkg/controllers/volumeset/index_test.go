package volumeset

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestLookReadsNoOthers checks that reconciling a filled set reads only its own volumes, not those of the cluster. A
// cache reads an index, and then compares the labels of all objects that the index returns.
func TestLookReadsNoOthers(t *testing.T) {
	read := 0
	calls := interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if _, ok := into.(*corev1.PersistentVolumeList); ok {
				o := (&client.ListOptions{}).ApplyOptions(options)
				var gone corev1.PersistentVolumeList // all that the index returns
				if err := c.List(ctx, &gone, &client.ListOptions{FieldSelector: o.FieldSelector}); err != nil {
					return err
				}
				read += len(gone.Items)
			}
			return c.List(ctx, into, options...)
		},
	}
	set := stored()
	objects := []client.Object{set, fast()}
	for _, v := range described(t, set, "a:available b:available c:bound relabelled:bound") {
		objects = append(objects, v)
		if v.Name == "relabelled" {
			v.Labels = map[string]string{"pool": "b"}
		}
	}
	for i := range 50 {
		objects = append(objects, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("other-", i), Labels: map[string]string{"pool": "b"}},
		})
	}
	r, _ := bench(t, calls, objects...)
	now := r.look(t)
	if s := now.Status; len(s.Slots) > 0 || s.BoundReplicas != 1 || s.RelabelledReplicas != 1 {
		t.Fatalf("the status is %+v", s)
	}
	if want := 3 + 4; read != want { // Those with its labels, and those that it created.
		t.Errorf("a look went through %d volumes, want %d", read, want)
	}
}
