package doctor

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// Own has the objects of Stowage's own kinds. The rules of this package do not need them.
type Own struct {
	Sets         []v1alpha1.PersistentVolumeSet
	Storages     []v1alpha1.NodeStorage
	LocalVolumes []v1alpha1.LocalVolume

	// Unread has an error for each kind that could not be read: it is not installed, or must not be listed.
	Unread []error
}

// ReadOwn reads the objects of Stowage's own kinds with the rights of the caller.
func (c *Cluster) ReadOwn(ctx context.Context, api client.Reader) {
	own := &c.Own
	for _, kind := range []struct {
		name string
		read func() error
	}{
		{"PersistentVolumeSets", func() error {
			return all(ctx, api, func(l *v1alpha1.PersistentVolumeSetList) { own.Sets = append(own.Sets, l.Items...) })
		}},
		{"NodeStorages", func() error {
			return all(ctx, api, func(l *v1alpha1.NodeStorageList) { own.Storages = append(own.Storages, l.Items...) })
		}},
		{"LocalVolumes", func() error {
			return all(ctx, api, func(l *v1alpha1.LocalVolumeList) { own.LocalVolumes = append(own.LocalVolumes, l.Items...) })
		}},
	} {
		if err := kind.read(); err != nil {
			own.Unread = append(own.Unread, fmt.Errorf("the list of %s is not complete: %w", kind.name, err))
		}
	}
}
