package volumeset

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestEventsOfASet checks that a set has an event each time that its condition gets another reason, and only then.
func TestEventsOfASet(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("PersistentVolume").GroupKind()
	refusal, now := error(apierrors.NewInvalid(kind, "x", nil)), time.Unix(1000, 0)
	r, _ := bench(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, isVolume := o.(*corev1.PersistentVolume); isVolume && refusal != nil {
				return refusal
			}
			return c.Create(ctx, o, options...)
		},
	}, stored())
	told := events.NewFakeRecorder(10)
	r.events, r.now = told, func() time.Time { return now }
	for _, c := range []struct {
		name  string
		event func() error
		want  []string
	}{
		{"its class is missing", func() error { return nil }, []string{"Warning StorageClassNotFound "}},
		{"the class comes, and its volumes are refused", func() error { return r.client.Create(t.Context(), fast()) },
			[]string{"Warning TemplateRefused "}},
		{"they are refused again", func() error { now = now.Add(lastPause); return nil }, nil},
		{"they are accepted", func() error { now, refusal = now.Add(lastPause), nil; return nil },
			[]string{"Normal Filling "}},
	} {
		if err := c.event(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for range 3 {
			r.look(t)
		}
		var got []string
		for len(told.Events) > 0 {
			got = append(got, <-told.Events)
		}
		begins := func(got, want string) bool { return strings.HasPrefix(got, want) }
		if !slices.EqualFunc(got, c.want, begins) {
			t.Errorf("%s: the events are %q, want those that begin with %q", c.name, got, c.want)
		}
	}
}
