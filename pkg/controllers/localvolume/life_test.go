package localvolume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/params"
	"github.com/stowage-csi/stowage/pkg/volume"
)

var errGaveUp = errors.New("the client gave up")

// life creates, changes and deletes a volume, and perhaps a copy of it.
func (s *simulation) life(ctx context.Context, name string) {
	made := s.provision(ctx, name, int64(1+s.n(8))*mib, backends.ContentSource{})
	if made == nil {
		return
	}
	s.checkIsThere(made, made.CapacityBytes, name)
	s.sleep(3 * time.Second)
	for range s.n(4) {
		if s.n(2) == 0 {
			s.expand(ctx, made)
		} else {
			s.modify(ctx, made)
		}
	}
	s.checkIsThere(made, made.CapacityBytes, name)
	ends := []func(){func() { s.delete(ctx, name) }}
	switch s.n(4) {
	case 0:
		ends = append(ends, s.copied(ctx, made, backends.ContentSource{Volume: made.Handle})...)
	case 1:
		if handle := s.snapshot(ctx, made); handle != "" {
			ends = append(ends, func() { s.deleteSnapshot(ctx, handle) })
			ends = append(ends, s.copied(ctx, made, backends.ContentSource{Snapshot: handle})...)
		}
	case 2:
		if handle := s.group(ctx, made); handle != "" {
			ends = append(ends, func() { s.deleteGroup(ctx, handle) })
			source := backends.ContentSource{Snapshot: local.MemberHandle(handle, 0)}
			ends = append(ends, s.copied(ctx, made, source)...)
		}
	}
	for len(ends) > 0 {
		i := s.n(len(ends))
		ends[i]()
		ends = slices.Delete(ends, i, i+1)
	}
}

// copied creates a copy of a volume, and returns the functions that delete it.
func (s *simulation) copied(ctx context.Context, v *backends.Volume, source backends.ContentSource) (ends []func()) {
	name := "copy-of-" + v.Name
	made := s.provision(ctx, name, v.CapacityBytes+int64(s.n(2))*mib, source)
	if made == nil {
		return nil
	}
	s.checkIsThere(made, v.CapacityBytes, v.Name)
	if made.Topology[0][key] != v.Topology[0][key] || made.Source != source {
		s.Errorf("VIOLATION: the copy %+v of the volume %+v has the source %+v", made, v, source)
	}
	return []func(){func() { s.delete(ctx, name) }}
}

// provision requests a volume. It returns nil if none exists in the end.
func (s *simulation) provision(ctx context.Context, name string, bytes int64, source backends.ContentSource) (
	made *backends.Volume) {
	spec := backends.Spec{
		Name: name, Capacity: backends.CapacityRange{RequiredBytes: bytes}, Fingerprint: "f",
		Parameters: &local.Parameters{},
		Access: backends.Access{Types: []backends.AccessType{backends.Mount},
			Modes: []backends.AccessMode{backends.SingleNodeWriter}, Mountings: []backends.Mounting{{Filesystem: "ext4"}}},
	}
	err := s.ask(ctx, func(ctx context.Context, v *volume.Service) (err error) {
		if spec.Topology.Requisite = nil; s.n(3) == 0 { // The scheduler has chosen a node, perhaps another than before.
			spec.Topology.Requisite = []backends.Topology{{key: fmt.Sprintf("node-%d", s.n(3))}}
		}
		made, err = v.Create(ctx, spec, source)
		if err != nil && !isFinal(err) && s.n(3) == 0 {
			return errGaveUp
		}
		return err
	})
	switch {
	case backends.Is(err, backends.Exists) || errors.Is(err, errGaveUp):
		s.delete(ctx, name)
		return nil
	case err != nil:
		s.checkIsNowhere(name, "was refused: "+err.Error())
		return nil
	}
	return made
}

func (s *simulation) delete(ctx context.Context, name string) {
	for s.ask(ctx, func(ctx context.Context, v *volume.Service) error {
		return v.Delete(ctx, local.Handle(name))
	}) != nil {
		s.sleep(time.Second) // csi-provisioner always retries.
	}
	s.checkIsNowhere(name, "was deleted")
}

// snapshot takes a snapshot of a volume and returns its handle, or "" if it was refused or given up.
func (s *simulation) snapshot(ctx context.Context, v *backends.Volume) string {
	spec := backends.SnapshotSpec{Name: "snapshot-of-" + v.Name, Volume: v.Handle}
	handle := local.SnapshotHandle(spec.Name)
	var made *backends.Snapshot
	err := s.ask(ctx, func(ctx context.Context, service *volume.Service) (err error) {
		if made, err = service.CreateSnapshot(ctx, spec); err != nil && !isFinal(err) && s.n(5) == 0 {
			return errGaveUp
		}
		return err
	})
	switch {
	case errors.Is(err, errGaveUp):
		s.deleteSnapshot(ctx, handle)
		return ""
	case err != nil:
		s.checkSnapshotIsNowhere(handle, "was refused: "+err.Error())
		return ""
	}
	if made.Handle != handle || made.SizeBytes != v.CapacityBytes || !made.Ready || made.Volume != v.Handle {
		s.Errorf("VIOLATION: the snapshot of %+v is %+v", v, made)
	}
	return handle
}

func (s *simulation) deleteSnapshot(ctx context.Context, handle string) {
	for s.ask(ctx, func(ctx context.Context, v *volume.Service) error { return v.DeleteSnapshot(ctx, handle) }) != nil {
		s.sleep(time.Second) // csi-snapshotter always retries.
	}
	s.checkSnapshotIsNowhere(handle, "was deleted")
}

func (s *simulation) expand(ctx context.Context, v *backends.Volume) {
	want := backends.CapacityRange{RequiredBytes: v.CapacityBytes + int64(1+s.n(8))*mib}
	err := s.ask(ctx, func(ctx context.Context, service *volume.Service) error {
		grown, err := service.Expand(ctx, v.Handle, want)
		if err == nil {
			v.CapacityBytes = grown.CapacityBytes
		}
		return err
	})
	if err != nil && !backends.Is(err, backends.Exhausted) {
		s.Errorf("VIOLATION: %s does not grow: %v", v.Name, err)
	}
}

// modify changes mutable parameters. The driver must have the last requested values, whatever it refused before.
func (s *simulation) modify(ctx context.Context, v *backends.Volume) {
	mutable := local.Mutable{ReadAheadKiB: ptr.To(s.n(3))}
	if s.n(2) == 0 {
		mutable.OnDelete = ptr.To([]string{"retain", "delete"}[s.n(2)])
	}
	err := s.ask(ctx, func(ctx context.Context, service *volume.Service) error {
		return service.Modify(ctx, v.Handle, &mutable)
	})
	have := s.nodes[v.Topology[0][key]].mutable(v.Handle)
	for name, wanted := range params.Encode(&mutable) {
		if err == nil && have[name] != wanted {
			s.Errorf("VIOLATION: %s was to have the %s %s, and has %v", v.Name, name, wanted, have)
		}
	}
}

func (s *simulation) checkIsNowhere(name, why string) {
	if nodes := s.have(name); len(nodes) > 0 {
		s.Errorf("VIOLATION: %s %s, and is on %v", name, why, nodes)
	}
}

func (s *simulation) checkSnapshotIsNowhere(handle, why string) {
	for _, n := range s.nodes {
		n.mu.Lock()
		if _, ok := n.snapshots[handle]; ok {
			s.Errorf("VIOLATION: the snapshot %s %s, and is on %s", handle, why, n.name)
		}
		n.mu.Unlock()
	}
}

// checkIsThere checks that a volume is on its node with at least that size, and has the contents of the named volume.
func (s *simulation) checkIsThere(v *backends.Volume, least int64, contents string) {
	nodes := s.have(v.Name)
	if len(nodes) != 1 || v.Topology[0][key] != nodes[0] {
		s.Errorf("VIOLATION: %s was made on %v, and is on %v", v.Name, v.Topology, nodes)
		return
	}
	n := s.nodes[nodes[0]]
	n.mu.Lock()
	defer n.mu.Unlock()
	have := n.volumes[v.Handle]
	if have.bytes < least || v.CapacityBytes < least || have.contents != local.Handle(contents) {
		s.Errorf("VIOLATION: %s is %+v, with %d bytes in the answer: want %d, and the contents of %s", v.Name, have,
			v.CapacityBytes, least, contents)
	}
}
