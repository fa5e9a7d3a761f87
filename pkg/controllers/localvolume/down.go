package localvolume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// down returns why a node is not expected to work now, or "" while it is ready. Kubernetes notices a silent kubelet
// after some forty seconds. The answer is therefore only for messages and for the choice of a node: no volume's safety
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

// checkUp fails at once if the node is down, instead of waiting for it. Kinds: Unavailable.
func (m *Master) checkUp(ctx context.Context, name string) error {
	why, err := m.down(ctx, name)
	if err != nil || why == "" {
		return err
	}
	return backends.Errorf(backends.Unavailable, "node %s has the volume, and %s; it is asked once it is back", name, why)
}
