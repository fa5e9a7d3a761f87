package nodestorage

import (
	"context"
	"fmt"
	"strings"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// saveRest writes a refused spec again, without the changes of volumes whose PersistentVolume became Retain: a CRD that
// is older than this master does not allow their offers to follow. The node's other volumes proceed. The problem is
// reported even if that was not the reason of the refusal.
func (r *reconciler) saveRest(ctx context.Context, v *view, a *actions, refusal error) error {
	held := a.holdRetained(v.storage)
	if len(held) == 0 {
		a.tellRefused(v.storage, refusal, "nothing of the node's volumes is written until then")
		return refusal
	}
	err := r.saveSpec(ctx, v, a)
	if isOfOne(err) {
		a.tellRefused(v.storage, err, "nothing of the node's volumes is written until then")
	} else if err == nil {
		a.tellRefused(v.storage, refusal, "what became of the policy Retain is left as it is written until then: volume "+
			strings.Join(held, ", "))
		a.refused = append(a.refused, refusal)
	}
	return err
}

// holdRetained reverts the plan for the volumes whose offers were to get another reclaim policy, and returns them.
func (a *actions) holdRetained(storage *v1alpha1.NodeStorage) (held []string) {
	written := map[v1alpha1.VolumeName]v1alpha1.VolumeOffer{}
	for _, o := range storage.Spec.Offers {
		written[o.Volume] = o
	}
	for _, o := range a.spec.DeepCopy().Offers {
		before, is := written[o.Volume]
		if is && before.PersistentVolume == o.PersistentVolume && before.ReclaimPolicy != o.ReclaimPolicy {
			a.hold(storage, o.Volume)
			held = append(held, string(o.Volume))
		}
	}
	return held
}

func (a *actions) tellRefused(storage *v1alpha1.NodeStorage, refusal error, outcome string) {
	a.told = append(a.told, problem{storage, "StorageRefused",
		fmt.Sprintf("the API server refuses what this NodeStorage is to say: if the definition of NodeStorages is older than"+
			" this master, apply that of its version (deploy/kubernetes/crds); %s: %v", outcome, refusal)})
}
