package localvolume

import (
	"context"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// finalizer keeps a LocalVolume while something of it may be on its node.
const finalizer = v1alpha1.LocalVolumeFinalizer

// Options of the master.
type Options struct {
	Namespace   string                                // of the LocalVolumes and NodeStorages
	TopologyKey string                                // of the one segment of a volume's place: its node
	Handle      func(name string) string              // that a node's driver gives the volume of the name
	Access      func(poolType string) backends.Access // to the volumes of a pool of the type
	Log         *slog.Logger
}

// Master makes volumes on the nodes of a cluster.
type Master struct {
	Options
	cache client.Reader
	live  client.Reader // reads past the cache
	write client.Client
	news  news
}

// Add adds the master to the controllers that m runs. What it returns can be used once they run.
func Add(m ctrl.Manager, o Options) (*Master, error) {
	master := New(o, m.GetClient(), m.GetAPIReader(), m.GetClient())
	everywhere := false // Also a replica that does not lead answers calls.
	err := ctrl.NewControllerManagedBy(m).Named("localvolume-news").For(&v1alpha1.LocalVolume{}).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere}).Complete(&master.news)
	if err != nil {
		return nil, err
	}
	return master, ctrl.NewControllerManagedBy(m).Named("localvolume").For(&v1alpha1.LocalVolume{}).
		Complete(&janitor{master})
}

// New makes a master, which is told of each change of a LocalVolume by Changed.
func New(o Options, cache, live client.Reader, write client.Client) *Master {
	return &Master{Options: o, cache: cache, live: live, write: write, news: news{waiting: map[string]*waiting{}}}
}

// TopologyKeys is the key of the node.
func (m *Master) TopologyKeys() []string { return []string{m.TopologyKey} }

func (m *Master) place(node string) backends.Topology { return backends.Topology{m.TopologyKey: node} }

// get reads a LocalVolume past the cache; nil for none.
func (m *Master) get(ctx context.Context, handle string) (*v1alpha1.LocalVolume, error) {
	if err := ctx.Err(); err != nil {
		return nil, backends.Errorf(backends.Busy, "the request has ended: %w", err)
	}
	o := &v1alpha1.LocalVolume{}
	err := m.live.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: handle}, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, unreachable(err)
	}
	return o, nil
}
