package volumeworker

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/uses"
)

// using is a driver that only says whether its node uses a volume.
type using struct {
	Driver
	use   uses.Use
	err   error
	asked int
	while func() // runs while the driver is asked; may be nil
}

func (d *using) Use(context.Context, string) (uses.Use, error) {
	d.asked++
	if d.while != nil {
		d.while()
	}
	return d.use, d.err
}

// asking returns an API server with a LocalVolume of node-1 that bears a question.
func asking(t *testing.T, question string) (client.WithWatch, *v1alpha1.LocalVolume) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := &v1alpha1.LocalVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lv"}}
	o.Spec.Order = v1alpha1.Order{Node: "node-1", Attempt: 1}
	if question != "" {
		o.Annotations = map[string]string{v1alpha1.UseQuestionAnnotation: question}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(o).WithStatusSubresource(o).Build(), o
}

// answer reconciles the LocalVolume, and returns the pause and the answer in its status.
func answer(t *testing.T, api client.WithWatch, node string, driver Driver) (time.Duration, *v1alpha1.VolumeUse) {
	t.Helper()
	o := &v1alpha1.LocalVolume{}
	r := NewUseReporter(Options{Node: node, Driver: driver, Timeout: time.Minute}, api, api)
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "lv"}}
	result, err := r.Reconcile(t.Context(), request)
	if err := errors.Join(err, api.Get(t.Context(), request.NamespacedName, o)); err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter, o.Status.Use
}

// TestUseIsReported checks that a question is answered with what the driver says, and that an unknown use counts as
// one. After each report the volume is looked at again.
func TestUseIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		question, node string
		driver         using
		want           *v1alpha1.VolumeUse
	}{
		"no question":     {"", "node-1", using{}, nil},
		"of another node": {"q", "node-2", using{}, nil},
		"not in use":      {"q", "node-1", using{}, &v1alpha1.VolumeUse{Question: "q"}},
		"in use": {"q", "node-1", using{use: uses.Use{InUse: true, Says: "staged at /x"}},
			&v1alpha1.VolumeUse{Question: "q", InUse: true, Message: "staged at /x"}},
		"not known": {"q", "node-1", using{err: errors.New("it does not answer")},
			&v1alpha1.VolumeUse{Question: "q", InUse: true, Message: "it does not answer"}},
	} {
		api, _ := asking(t, c.question)
		pause, use := answer(t, api, c.node, &c.driver)
		if (use == nil) != (c.want == nil) || use != nil && *use != *c.want {
			t.Errorf("%s: the answer is %+v, want %+v", name, use, c.want)
		}
		if isAsked := c.driver.asked > 0; isAsked != (c.want != nil) || (pause > 0) != isAsked {
			t.Errorf("%s: the next look is after %s, and the driver was asked %d times", name, pause, c.driver.asked)
		}
	}
}

// TestUseIsNotLost checks that an answer arrives although a CustomResourceDefinition of an earlier version dropped it,
// once the definition has the field. The API server says nothing of a field that it drops.
func TestUseIsNotLost(t *testing.T) {
	api, _ := asking(t, "q")
	isEarlier := true
	old := interceptor.NewClient(api, interceptor.Funcs{SubResourceUpdate: func(
		ctx context.Context, c client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
		if lv, ok := o.(*v1alpha1.LocalVolume); ok && isEarlier {
			lv.Status.Use = nil
		}
		return c.Status().Update(ctx, o)
	}})
	driver := &using{}
	pause, use := answer(t, old, "node-1", driver)
	if use != nil || pause != whileUsed {
		t.Fatalf("with the earlier definition the answer is %+v, and the next look is after %s", use, pause)
	}
	isEarlier = false
	if _, use := answer(t, old, "node-1", driver); use == nil || *use != (v1alpha1.VolumeUse{Question: "q"}) {
		t.Errorf("with the definition of this version the answer is %+v", use)
	}
	if pause, _ := answer(t, old, "node-1", driver); pause > 0 || driver.asked != 2 {
		t.Errorf("the next look is after %s, and the driver was asked %d times", pause, driver.asked)
	}
}

// TestUseEnds checks that the end of a use is reported, and that the driver is not asked again until there is another
// question.
func TestUseEnds(t *testing.T) {
	api, o := asking(t, "first")
	driver := &using{use: uses.Use{InUse: true, Says: "staged at /x"}}
	answer(t, api, "node-1", driver)
	driver.use = uses.Use{}
	for range 3 {
		if _, use := answer(t, api, "node-1", driver); *use != (v1alpha1.VolumeUse{Question: "first"}) {
			t.Errorf("after its end the use is %+v", use)
		}
	}
	if driver.asked != 2 {
		t.Errorf("the driver was asked %d times, want 2", driver.asked)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	o.Annotations[v1alpha1.UseQuestionAnnotation] = "second"
	if err := api.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, use := answer(t, api, "node-1", driver); *use != (v1alpha1.VolumeUse{Question: "second"}) {
		t.Errorf("the answer to another question is %+v", use)
	}
}

// TestAnswerIsNewerThanItsQuestion checks that an answer is not given to a question that came after it.
func TestAnswerIsNewerThanItsQuestion(t *testing.T) {
	api, o := asking(t, "first")
	driver := &using{while: func() {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Error(err)
		}
		o.Annotations[v1alpha1.UseQuestionAnnotation] = "second"
		if err := api.Update(t.Context(), o); err != nil {
			t.Error(err)
		}
	}}
	if pause, use := answer(t, api, "node-1", driver); use != nil || pause == 0 {
		t.Errorf("the answer is %+v, and the next look is after %s", use, pause)
	}
}
