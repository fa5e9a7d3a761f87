package localvolume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// down says why nothing is to be expected of a node now; empty while it is ready. Kubernetes notices that a kubelet is
// silent after some forty seconds, so that the answer is for people and for the choice of a node: no volume's safety
// depends on it.
func (m *Master) down(ctx context.Context, name string) (why string, err error) {
	node := &corev1.Node{}
	err = m.cache.Get(ctx, client.ObjectKey{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		return "it is no node of the cluster any more", nil
	case err != nil:
		return "", unreachable(err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "it is not ready: " + c.Message, nil
		}
	}
	return "", nil
}

// checkUp refuses at once what would wait for a node that is down. Kinds: Unavailable.
func (m *Master) checkUp(ctx context.Context, name string) error {
	why, err := m.down(ctx, name)
	if err != nil || why == "" {
		return err
	}
	return backends.Errorf(backends.Unavailable, "node %s has the volume, and %s; it is asked once it is back", name, why)
}
