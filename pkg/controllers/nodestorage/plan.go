package nodestorage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// most is the maximum number of offers, and of deletions, in a NodeStorage.
const most = 256

// view holds the data for a decision about one node. The objects that it points to are not changed.
type view struct {
	storage *v1alpha1.NodeStorage
	isFresh bool              // the storage was read past the cache
	readAt  time.Time         // when that read began
	labels  map[string]string // of the Node; nil without a Node
	// hostname is the value by which PersistentVolumes name the node. Rivals are the other nodes with that value, once
	// they are counted.
	hostname  string
	rivals    []string
	isCounted bool
	isGone    bool                                // the Node has been missing for too long
	volumes   map[string]*corev1.PersistentVolume // of the node, by name
	proven    map[string]bool                     // names that were read past the cache
	births    map[string]birth                    // PersistentVolumes that this process must create
	classes   []class
	rules     Rules
}

// actions bring a node's volumes closer to their desired state.
type actions struct {
	spec    *v1alpha1.NodeStorageSpec  // to be written, or nil
	reclaim string                     // the remaining value of the operator's annotation, written with the spec
	create  []v1alpha1.VolumeOffer     // create the PersistentVolumes of these offers
	occupy  []v1alpha1.VolumeOffer     // create those of these, so that no claim can be bound to them
	reserve []*corev1.PersistentVolume // no claim may be bound to these any longer
	remove  []*corev1.PersistentVolume // delete these; the finalizer keeps them
	release []*corev1.PersistentVolume // remove the finalizer from these
	ask     []string                   // read these past the cache first
	recheck bool                       // read the NodeStorage past the cache first
	count   bool                       // count the rivals first
	adopt   []string                   // PersistentVolumes that never existed, of other masters' offers
	pin     string                     // the hostname to record, written with the spec
	retire  bool                       // the node is gone: delete its NodeStorage; the finalizer keeps it
	over    bool                       // remove the finalizer of the NodeStorage
	told    []problem
	refused []error // errors of writes that concern one volume each
}

// problem is reported to people in an event.
type problem struct {
	about   client.Object
	reason  string
	message string
}

// planner creates a plan.
type planner struct {
	view
	actions
	next    v1alpha1.NodeStorageSpec
	states  map[v1alpha1.OperationID]v1alpha1.DeleteStatus
	found   map[v1alpha1.VolumeName]v1alpha1.LocalVolumeStatus
	wanted  []string // volumes that the operator wants wiped
	dropped map[v1alpha1.VolumeName]bool
	// isOwn reports whether the hostname is the node's own. It is valid if isJudged is set.
	isJudged, isOwn bool
}

// plan decides on the actions for a node. If the plan needs more reads, it must not be carried out.
func plan(v view) actions {
	if v.isGone && v.storage.DeletionTimestamp == nil { // This object never leads to another offer.
		return actions{retire: true}
	}
	p := &planner{
		view: v, next: *v.storage.Spec.DeepCopy(), dropped: map[v1alpha1.VolumeName]bool{},
		states: map[v1alpha1.OperationID]v1alpha1.DeleteStatus{}, found: map[v1alpha1.VolumeName]v1alpha1.LocalVolumeStatus{},
		wanted: names(v.storage.Annotations[v1alpha1.ReclaimAnnotation]),
	}
	for _, s := range v.storage.Status.DeleteOperations {
		p.states[s.ID] = s
	}
	for _, f := range v.storage.Status.LocalVolumes {
		p.found[f.Name] = f
	}
	p.withdraw()
	for i := range p.next.Offers {
		p.judge(&p.next.Offers[i])
	}
	p.strays()
	p.reclaims()
	p.finish()
	p.offers()
	p.conclude()
	return p.actions
}

// conclude compares the planned spec with the written one.
func (p *planner) conclude() {
	p.reclaim = strings.Join(p.wanted, ",")
	if !equality.Semantic.DeepEqual(p.next, p.storage.Spec) ||
		p.reclaim != p.storage.Annotations[v1alpha1.ReclaimAnnotation] {
		p.spec = &p.next
	}
	if p.storage.DeletionTimestamp == nil {
		p.tellRetained()
		return
	}
	p.over = p.spec == nil && p.isReplaceable()
	if kept := p.retained(); len(kept) > 0 {
		p.tell(p.storage, "Retained", p.wayOut()+": "+strings.Join(kept, ", "))
	}
}

// tellRetained reports each retained volume for which no wipe was requested.
func (p *planner) tellRetained() {
	for _, o := range p.next.Offers {
		if o.Retained && p.operation(o.Volume) == nil {
			p.tell(p.storage, "Retained",
				fmt.Sprintf("volume %s is kept as the PersistentVolume %s left it, and offered to nobody: name it in the"+
					" annotation %s to have it wiped and offered again, or in %s once its disk is gone for good", o.Volume,
					o.PersistentVolume, v1alpha1.ReclaimAnnotation, v1alpha1.ForgetAnnotation))
		}
	}
}

// wayOut tells an operator how to end a NodeStorage that is kept by retained volumes.
func (p *planner) wayOut() string {
	if p.isGone {
		return fmt.Sprintf("it is being deleted, and stays for the volumes that the node retains; set the annotation %s"+
			" to \"true\" to give them up", v1alpha1.ForgetAnnotation)
	}
	return fmt.Sprintf("it is being deleted, and stays for the volumes that are retained, while others are offered"+
		" as before; name volumes in the annotation %s to have them wiped, or in %s once their disks are gone for good",
		v1alpha1.ReclaimAnnotation, v1alpha1.ForgetAnnotation)
}

// retained returns the volumes that are kept in the state in which their last PersistentVolume left them.
func (p *planner) retained() (all []string) {
	for _, o := range p.next.Offers {
		if o.Retained {
			all = append(all, string(o.Volume))
		}
	}
	return all
}

// isReplaceable reports whether the NodeStorage could be restored from its PersistentVolumes.
func (p *planner) isReplaceable() bool {
	if p.isGone {
		return len(p.next.Offers)+len(p.next.DeleteOperations)+len(p.volumes) == 0
	}
	return len(p.next.DeleteOperations) == 0 && !slices.ContainsFunc(p.next.Offers, func(o v1alpha1.VolumeOffer) bool {
		pv := p.volumes[o.PersistentVolume]
		return o.Retained || pv == nil || pv.DeletionTimestamp != nil
	})
}

// finish removes dropped offers, and deletions that are no longer awaited.
func (p *planner) finish() {
	p.next.Offers = slices.DeleteFunc(p.next.Offers, func(o v1alpha1.VolumeOffer) bool { return p.dropped[o.Volume] })
	p.next.DeleteOperations = slices.DeleteFunc(p.next.DeleteOperations, func(r v1alpha1.DeleteRequest) bool {
		if p.dropped[r.Volume] {
			return true
		}
		return !p.isOffered(r.Volume) && (p.isGone || p.isComplete(&r))
	})
	for _, r := range p.next.DeleteOperations {
		if !p.isOffered(r.Volume) {
			p.tellError(p.storage, &r)
		}
	}
}

func (p *planner) isOffered(volume v1alpha1.VolumeName) bool {
	return slices.ContainsFunc(p.next.Offers, func(o v1alpha1.VolumeOffer) bool { return o.Volume == volume })
}

// operation returns the planned deletion of a volume, or nil.
func (p *planner) operation(volume v1alpha1.VolumeName) *v1alpha1.DeleteRequest {
	at := slices.IndexFunc(p.next.DeleteOperations, func(r v1alpha1.DeleteRequest) bool { return r.Volume == volume })
	if at < 0 {
		return nil
	}
	return &p.next.DeleteOperations[at]
}

// isComplete reports whether the worker has completed a deletion. Only a report with this ID and this volume counts.
func (p *planner) isComplete(r *v1alpha1.DeleteRequest) bool {
	s := p.states[r.ID]
	return s.State == v1alpha1.DeleteComplete && s.Volume == r.Volume
}

// ofNothing is the prefix of the ID of a deletion that no object waits for.
const ofNothing = "absent"

// delete requests a wipe of a volume, which replaces any earlier request.
func (p *planner) delete(volume v1alpha1.VolumeName, policy v1alpha1.WipePolicy, object string) (asked bool) {
	p.undelete(volume)
	if !p.mayWipe(volume) || len(p.next.DeleteOperations) >= most {
		return false
	}
	id := v1alpha1.OperationID(object + "-" + strings.ReplaceAll(uuid.NewString(), "-", "")[:16])
	p.next.DeleteOperations = append(p.next.DeleteOperations,
		v1alpha1.DeleteRequest{ID: id, Volume: volume, Policy: policy})
	return true
}

func (p *planner) undelete(volume v1alpha1.VolumeName) {
	p.next.DeleteOperations = slices.DeleteFunc(p.next.DeleteOperations,
		func(r v1alpha1.DeleteRequest) bool { return r.Volume == volume })
}

// isGivenUp reports whether the operator gave up the data of a volume on the node.
func (p *planner) isGivenUp(volume v1alpha1.VolumeName) bool {
	_, isThere := p.found[volume]
	return p.isGone && p.storage.Annotations[v1alpha1.ForgetAnnotation] == "true" || !isThere && p.isForgotten(volume)
}

// isForgotten reports whether the operator names a volume in the annotation that gives volumes up.
func (p *planner) isForgotten(volume v1alpha1.VolumeName) bool {
	return slices.Contains(names(p.storage.Annotations[v1alpha1.ForgetAnnotation]), string(volume))
}

func (p *planner) tell(about client.Object, reason, message string) {
	p.told = append(p.told, problem{about, reason, message})
}

// names returns the names in a comma-separated list.
func names(list string) (all []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	return all
}
