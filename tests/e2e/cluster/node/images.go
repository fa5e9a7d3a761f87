package node

import (
	"context"
	"fmt"
	"os"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/machine"
)

// ImportCommand returns a command, for the node's namespaces, that imports the archive of an image; - is standard
// input. The image is pinned, so that it is never garbage-collected: there is no registry from which to pull it again.
func ImportCommand(l layout.Layout, archive string) []string {
	return []string{
		l.Program("ctr"), "--address", containerdSocket, "--namespace", "k8s.io",
		"images", "import", "--local", "--label", "io.cri-containerd.pinned=pinned", archive,
	}
}

// importImages imports the images of the cluster, and records that it has done so.
func (n *self) importImages(ctx context.Context, m *machine.Machine) error {
	if err := machine.Until(ctx, "containerd", machine.Answers("unix", containerdSocket)); err != nil {
		return err
	}
	for _, archive := range n.images {
		if err := m.Run(ctx, ImportCommand(n.layout, archive)...); err != nil {
			return fmt.Errorf("import %s: %w", archive, err)
		}
	}
	m.Log.Info("imported", "images", len(n.images))
	return os.WriteFile(n.layout.NodeImages(n.name), nil, 0o644)
}
