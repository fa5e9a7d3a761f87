package localvolume

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// untilThere is the pause until a LocalVolume is looked at again that does not exist, for example during a restore of
// the cluster's objects, or that has no final answer: its question may have been removed from it.
const untilThere = time.Minute

// Questions passes the recycler's questions on to the workers: whether the node uses a volume that is being recycled.
// The recycler's record on a PersistentVolume is the question. A worker reads no PersistentVolumes, and the recycler
// writes no LocalVolumes.
type Questions struct {
	namespace, driver string
	cache             client.Reader
	live              client.Reader // bypasses the cache
	write             client.Client
}

// NewQuestions returns Questions about the volumes of a driver, whose LocalVolumes are in the namespace.
func NewQuestions(namespace, driver string, cache, live client.Reader, write client.Client) *Questions {
	return &Questions{namespace: namespace, driver: driver, cache: cache, live: live, write: write}
}

// add adds the questions to the controllers that m runs.
func (q *Questions) add(m ctrl.Manager) error {
	asks := predicate.NewPredicateFuncs(func(o client.Object) bool {
		pv, ok := o.(*corev1.PersistentVolume)
		return ok && q.of(pv) != ""
	})
	return ctrl.NewControllerManagedBy(m).Named("localvolume-questions").
		For(&corev1.PersistentVolume{}, builder.WithPredicates(asks)).Complete(q)
}

// of returns the question about a PersistentVolume, or "".
func (q *Questions) of(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != q.driver {
		return ""
	}
	return v1alpha1.UseQuestion(pv.Annotations[v1alpha1.RecyclingAnnotation])
}

// Reconcile passes on the question about one PersistentVolume. The question is read past the cache and after the
// LocalVolume: a master that has lost the lease replaces no newer question.
func (q *Questions) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pv := &corev1.PersistentVolume{}
	if err := q.cache.Get(ctx, request.NamespacedName, pv); err != nil || q.of(pv) == "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	o := &v1alpha1.LocalVolume{}
	key := client.ObjectKey{Namespace: q.namespace, Name: pv.Spec.CSI.VolumeHandle}
	switch err := q.live.Get(ctx, key, o); {
	case apierrors.IsNotFound(err):
		return ctrl.Result{RequeueAfter: untilThere}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	if err := q.live.Get(ctx, request.NamespacedName, pv); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	question := q.of(pv)
	if use := o.Status.Use; question == "" || use != nil && use.Question == question && !use.InUse {
		return ctrl.Result{}, nil
	}
	if err := q.passOn(ctx, o, question); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: untilThere}, nil
}

// passOn writes the question, unless the LocalVolume has it.
func (q *Questions) passOn(ctx context.Context, o *v1alpha1.LocalVolume, question string) error {
	if o.Annotations[v1alpha1.UseQuestionAnnotation] == question {
		return nil
	}
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.UseQuestionAnnotation, question)
	return client.IgnoreNotFound(q.write.Update(ctx, o))
}
