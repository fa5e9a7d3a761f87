package volumeworker

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// whileUsed is the pause until the driver is asked again about a volume without a final answer. Only a change is
// written.
const whileUsed = 3 * time.Second

// UseReporter reports in the status of a LocalVolume whether the node uses the volume, if its annotation asks. An
// answer that the volume is not in use is final: only another question gets another answer.
type UseReporter struct {
	Options
	cache client.Reader
	write client.Client
}

// NewUseReporter returns a UseReporter.
func NewUseReporter(o Options, cache client.Reader, write client.Client) *UseReporter {
	return &UseReporter{Options: o, cache: cache, write: write}
}

// Reconcile answers the question about one volume. The question is read before the driver is asked, and the answer is
// written with the version that was read: it is an answer to that question. Only the next look shows that a written
// answer was kept: a CustomResourceDefinition of an earlier version drops it without an error.
func (r *UseReporter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o := &v1alpha1.LocalVolume{}
	if err := r.cache.Get(ctx, request.NamespacedName, o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	question := o.Annotations[v1alpha1.UseQuestionAnnotation]
	if o.Spec.Node != r.Node || question == "" || isAnswered(o.Status.Use, question) {
		return ctrl.Result{}, nil
	}
	use := r.ask(ctx, o.Name, question)
	if !equality.Semantic.DeepEqual(o.Status.Use, use) {
		o.Status.Use = use
		if err := r.write.Status().Update(ctx, o, leniently()); err != nil {
			return again(err)
		}
	}
	return ctrl.Result{RequeueAfter: whileUsed}, nil
}

// isAnswered reports whether the question has its final answer.
func isAnswered(use *v1alpha1.VolumeUse, question string) bool {
	return use != nil && use.Question == question && !use.InUse
}

// ask asks the driver. A volume whose use is not known counts as in use.
func (r *UseReporter) ask(ctx context.Context, volume, question string) *v1alpha1.VolumeUse {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	use, err := r.Driver.Use(ctx, volume)
	if err != nil {
		return &v1alpha1.VolumeUse{Question: question, InUse: true, Message: v1alpha1.Message(err.Error())}
	}
	return &v1alpha1.VolumeUse{Question: question, InUse: use.InUse, Message: v1alpha1.Message(use.Says)}
}
