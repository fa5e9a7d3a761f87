package driver

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/volume"
)

func encodeVolume(v *backends.Volume) *csi.Volume {
	return &csi.Volume{
		VolumeId:           v.Handle,
		CapacityBytes:      v.CapacityBytes,
		VolumeContext:      volume.EncodeContext(v.Settings, v.Attributes),
		ContentSource:      encodeSource(v.Source),
		AccessibleTopology: encodeTopology(v.Topology),
	}
}

func encodeSource(s backends.ContentSource) *csi.VolumeContentSource {
	switch {
	case s.Snapshot != "":
		source := &csi.VolumeContentSource_SnapshotSource{SnapshotId: s.Snapshot}
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: source}}
	case s.Volume != "":
		source := &csi.VolumeContentSource_VolumeSource{VolumeId: s.Volume}
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: source}}
	}
	return nil
}

func encodeTopology(places []backends.Topology) []*csi.Topology {
	var list []*csi.Topology
	for _, place := range places {
		list = append(list, &csi.Topology{Segments: place})
	}
	return list
}

func encodeSnapshot(s *backends.Snapshot) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId:         s.Handle,
		SourceVolumeId:     s.Volume,
		SizeBytes:          s.SizeBytes,
		CreationTime:       timestamppb.New(s.CreatedAt),
		ReadyToUse:         s.Ready,
		GroupSnapshotId:    s.Group,
		AccessibleTopology: encodeTopology(s.Topology),
	}
}

func encodeGroup(g *backends.Group) *csi.VolumeGroupSnapshot {
	group := &csi.VolumeGroupSnapshot{
		GroupSnapshotId: g.Handle, CreationTime: timestamppb.New(g.CreatedAt), ReadyToUse: g.Ready(),
	}
	for i := range g.Snapshots {
		group.Snapshots = append(group.Snapshots, encodeSnapshot(&g.Snapshots[i]))
	}
	return group
}
