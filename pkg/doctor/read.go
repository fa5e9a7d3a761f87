package doctor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// page is how many objects a request asks for.
const page = 500

// Read takes one look at the cluster with the rights of the caller. If a kind must not be listed, the error names it.
func Read(ctx context.Context, api client.Reader) (*Cluster, error) {
	c := &Cluster{}
	for _, read := range []func() error{
		func() error {
			return all(ctx, api, func(l *corev1.PersistentVolumeClaimList) { c.Claims = append(c.Claims, l.Items...) })
		},
		func() error {
			return all(ctx, api, func(l *corev1.PersistentVolumeList) { c.Volumes = append(c.Volumes, l.Items...) })
		},
		func() error { return all(ctx, api, func(l *corev1.PodList) { c.Pods = append(c.Pods, l.Items...) }) },
		func() error { return all(ctx, api, func(l *corev1.NodeList) { c.Nodes = append(c.Nodes, l.Items...) }) },
		func() error {
			return all(ctx, api, func(l *corev1.EventList) { c.Events = append(c.Events, l.Items...) })
		},
		func() error {
			return all(ctx, api, func(l *storagev1.StorageClassList) { c.Classes = append(c.Classes, l.Items...) })
		},
		func() error {
			return all(ctx, api, func(l *storagev1.CSIDriverList) { c.Drivers = append(c.Drivers, l.Items...) })
		},
		func() error {
			return all(ctx, api, func(l *storagev1.CSINodeList) { c.CSINodes = append(c.CSINodes, l.Items...) })
		},
		func() error {
			return all(ctx, api, func(l *storagev1.VolumeAttachmentList) { c.Attachments = append(c.Attachments, l.Items...) })
		},
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// all reads a whole list, one page at a time.
func all[L any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, api client.Reader, take func(P)) error {
	var next string
	for {
		list := P(new(L))
		if err := api.List(ctx, list, client.Limit(page), client.Continue(next)); err != nil {
			return fmt.Errorf("read the cluster's objects: %w", err)
		}
		take(list)
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}
