package localvolume

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/params"
)

// CreateSnapshot has the node of a volume take a snapshot of it.
func (m *Master) CreateSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	handle := m.SnapshotHandle(spec.Name)
	taker := &snapshotMaker{Master: m, spec: spec, handle: handle}
	o, err := (&creation[*v1alpha1.LocalSnapshot]{orders: &m.snapshots, maker: taker, handle: handle}).run(ctx)
	if err != nil {
		return nil, err
	}
	return m.describeSnapshot(o), nil
}

// snapshotMaker takes a snapshot.
type snapshotMaker struct {
	*Master
	spec   backends.SnapshotSpec
	handle string
	silent string // why the node is not waited for
}

func (s *snapshotMaker) begin(ctx context.Context) (types.UID, error) {
	source, err := s.volumes.find(ctx, s.spec.Volume)
	if err != nil {
		return "", backends.Errorf(backends.KindOf(err), "the source: %w", err)
	}
	if err := s.checkPlace(source.Spec.Node, s.spec.Topology); err != nil {
		return "", err
	}
	if s.silent != "" {
		return "", backends.Errorf(backends.InUse, "node %s has the volume %s, and no snapshot was begun: %s",
			source.Spec.Node, s.spec.Volume, s.silent)
	}
	o := &v1alpha1.LocalSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.handle, Finalizers: []string{finalizer}},
		Spec: v1alpha1.LocalSnapshotSpec{
			Order: v1alpha1.Order{Node: source.Spec.Node, Attempt: 1}, SnapshotName: s.spec.Name, Volume: s.spec.Volume,
			Parameters: s.parameters(),
		},
	}
	return s.create(ctx, o)
}

func (s *snapshotMaker) fits(o *v1alpha1.LocalSnapshot) bool {
	return s.silent == "" && o.Spec.Volume == s.spec.Volume && maps.Equal(o.Spec.Parameters, s.parameters())
}

// parameters are those of the VolumeSnapshotClass, as the driver spells them.
func (s *snapshotMaker) parameters() map[string]string {
	if s.spec.Parameters == nil {
		return nil
	}
	return params.Encode(s.spec.Parameters)
}

// wait waits for the worker. What a node does not begin is withdrawn, so that the refusal is final: no other node has
// the volume, and a VolumeSnapshot whose outcome is open could not be deleted.
func (s *snapshotMaker) wait(ctx context.Context, o *v1alpha1.LocalSnapshot) (err error) {
	s.silent, err = s.snapshots.awaitBegun(ctx, o)
	return err
}

// goElsewhere finds no other node.
func (s *snapshotMaker) goElsewhere(string, string) bool { return false }
