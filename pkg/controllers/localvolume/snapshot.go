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

// CreateSnapshot makes the node of a volume take a snapshot of it.
func (m *Master) CreateSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	handle := m.SnapshotHandle(spec.Name)
	taker := &snapshotMaker{Master: m, spec: spec, handle: handle,
		onlyNode: onlyNode[*v1alpha1.LocalSnapshot]{of: &m.snapshots}}
	o, err := (&creation[*v1alpha1.LocalSnapshot]{orders: &m.snapshots, maker: taker, handle: handle}).run(ctx)
	if err != nil {
		return nil, err
	}
	return m.describeSnapshot(o), nil
}

// snapshotMaker takes a snapshot.
type snapshotMaker struct {
	*Master
	onlyNode[*v1alpha1.LocalSnapshot]
	spec   backends.SnapshotSpec
	handle string
}

func (s *snapshotMaker) begin(ctx context.Context) (types.UID, error) {
	source, err := s.volumes.find(ctx, s.spec.Volume)
	if err != nil {
		return "", backends.Errorf(backends.KindOf(err), "the source: %w", err)
	}
	if err := s.checkPlace(source.Spec.Node, s.spec.Topology); err != nil {
		return "", err
	}
	if err := s.checkHeard(source.Spec.Node); err != nil {
		return "", err
	}
	o := &v1alpha1.LocalSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.handle, Finalizers: []string{finalizer}},
		Spec: v1alpha1.LocalSnapshotSpec{
			Order: v1alpha1.Order{Node: source.Spec.Node, Attempt: 1}, SnapshotName: s.spec.Name, Volume: s.spec.Volume,
			Parameters: encoded(s.spec.Parameters),
		},
	}
	return s.create(ctx, o)
}

func (s *snapshotMaker) fits(o *v1alpha1.LocalSnapshot) bool {
	return s.silent == "" && o.Spec.Volume == s.spec.Volume && maps.Equal(o.Spec.Parameters, encoded(s.spec.Parameters))
}

// encoded returns the parameters of a VolumeSnapshotClass or VolumeGroupSnapshotClass in the driver's spelling.
func encoded(parameters any) map[string]string {
	if parameters == nil {
		return nil
	}
	return params.Encode(parameters)
}
