package volumeworker

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/pools"
)

// slight limits unreported changes to less than 1/slight of a pool's room: filesystems slowly lose room all the time,
// and every report is a write that all masters receive.
const slight = 128

// Reporter reports the pools of the node's driver in the status of its NodeStorage.
type Reporter struct {
	Options
	live  client.Reader
	write client.Client
	due   chan struct{} // requests a report before the period is over
}

// NewReporter returns a Reporter.
func NewReporter(o Options, live client.Reader, write client.Client) *Reporter {
	return &Reporter{Options: o, live: live, write: write, due: make(chan struct{}, 1)}
}

// Start reports until the context ends, once each period and after each change of a volume.
func (r *Reporter) Start(ctx context.Context) error {
	tick := time.NewTicker(r.Period)
	defer tick.Stop()
	for allOfIt := true; ; {
		if err := r.Report(ctx, allOfIt); err != nil && ctx.Err() == nil {
			r.Log.Warn("the pools of the node cannot be reported", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			allOfIt = false
		case <-r.due:
			allOfIt = true
		}
	}
}

// hurry requests an immediate report with all changes.
func (r *Reporter) hurry() {
	select {
	case r.due <- struct{}{}:
	default: // One is due already.
	}
}

// Report writes the driver's pools into the status if they have changed. Slight changes are written only with allOfIt.
// If another writer is first, Report fails, and the next report corrects the status.
func (r *Reporter) Report(ctx context.Context, allOfIt bool) error {
	o := &v1alpha1.NodeStorage{}
	if err := r.live.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Node}, o); err != nil {
		return client.IgnoreNotFound(err) // The master creates it.
	}
	ask, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	found, err := r.Driver.Pools(ask)
	after := status(found)
	if err != nil {
		after = troubled(o.Status.Pools, err)
	}
	if equality.Semantic.DeepEqual(o.Status.Pools, after) || !allOfIt && slices.EqualFunc(o.Status.Pools, after, alike) {
		return nil
	}
	o.Status.Pools = after
	return client.IgnoreNotFound(r.write.Status().Update(ctx, o, leniently()))
}

// leniently has a CRD of an earlier version drop the new fields of a status, not refuse the others with them. It is not
// for the result of an order, which is as wrong without a field as the order itself.
func leniently() client.SubResourceUpdateOption {
	return client.FieldValidation(metav1.FieldValidationWarn)
}

// status converts the driver's pools to statuses.
func status(found []pools.Pool) (all []v1alpha1.PoolStatus) {
	for _, p := range found {
		s := v1alpha1.PoolStatus{Name: p.Name, Type: p.Type, Available: v1alpha1.NewSize(p.AvailableBytes),
			Problem: v1alpha1.Message(p.Problem)}
		if p.LargestBytes > 0 {
			s.Largest = v1alpha1.NewSize(p.LargestBytes)
		}
		all = append(all, s)
	}
	return all
}

// troubled returns the last known pools of a driver that does not answer, with its error as their problem.
func troubled(before []v1alpha1.PoolStatus, err error) []v1alpha1.PoolStatus {
	after := make([]v1alpha1.PoolStatus, len(before))
	for i, p := range before {
		p.Problem = v1alpha1.Message(err.Error())
		after[i] = p
	}
	return after
}

// alike reports whether at most the room of a pool has changed, and only slightly.
func alike(a, b v1alpha1.PoolStatus) bool {
	return a.Name == b.Name && a.Type == b.Type && a.Problem == b.Problem &&
		isNear(a.Available, b.Available) && isNear(a.Largest, b.Largest)
}

// isNear reports whether two sizes differ at most slightly.
func isNear(a, b v1alpha1.Size) bool {
	have, want := a.Bytes(), b.Bytes()
	return have == want || max(have-want, want-have) < want/slight
}
