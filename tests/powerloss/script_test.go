package powerloss

import (
	"context"
	"fmt"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// script runs operations on the backend, one after the other or several concurrently, and records their beginnings and
// results in the journal.
type script struct {
	backend *backend
	journal *journal

	mu      sync.Mutex
	now     world
	handles map[string]string // by key
}

// do records an operation. The call returns its changes.
func (s *script) do(name string, writes bool, call func() (map[string]*state, error)) error {
	o := &operation{name: name, writes: writes}
	s.journal.add(entry{kind: begun, op: o})
	change, err := call()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	o.change = change // Before the journal is read.
	s.journal.add(entry{kind: answered, op: o})
	s.mu.Lock()
	defer s.mu.Unlock()
	o.applyTo(s.now)
	return nil
}

// get returns the known state of a key, and its handle.
func (s *script) get(key string) (state, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now[key], s.handles[key]
}

func (s *script) setHandle(key, handle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handles[key] = handle
}

// wish describes a volume to create.
type wish struct {
	name       string
	size       int64
	parameters local.Parameters
	from       string // the key of a volume or snapshot
}

func (s *script) make(ctx context.Context, w wish) error {
	key := "volume/" + w.name
	return s.do("create "+w.name, false, func() (map[string]*state, error) {
		made := state{SizeBytes: w.size, Fingerprint: "print of " + w.name, Allocation: "sparse", OnDelete: "delete"}
		if w.parameters.Allocation != "" {
			made.Allocation = w.parameters.Allocation
		}
		if w.parameters.ReadAheadKiB != nil {
			made.ReadAhead = *w.parameters.ReadAheadKiB
		}
		spec := backends.Spec{
			Name: w.name, Capacity: backends.CapacityRange{RequiredBytes: w.size}, Parameters: &w.parameters,
			Fingerprint: made.Fingerprint,
		}
		source, handle := s.get(w.from)
		made.Source, made.Content = handle, source.Content
		v, err := s.provision(ctx, spec, w.from, handle)
		if err != nil {
			return nil, err
		}
		s.setHandle(key, v.Handle)
		return map[string]*state{key: &made}, nil
	})
}

// provision creates the volume from its source, or empty.
func (s *script) provision(ctx context.Context, spec backends.Spec, from, handle string) (*backends.Volume, error) {
	switch {
	case from == "":
		return s.backend.controller.Create(ctx, spec)
	case from[0] == 'v':
		return s.backend.controller.Clone(ctx, spec, handle)
	}
	return s.backend.controller.Restore(ctx, spec, handle)
}

// write writes to the volume as its user does, and syncs.
func (s *script) write(ctx context.Context, name, label string) error {
	key := "volume/" + name
	return s.do("write "+label+" to "+name, true, func() (map[string]*state, error) {
		after, handle := s.get(key)
		after.Content = label
		source, err := s.backend.node.Source(ctx, backends.Attachment{Handle: handle})
		if err != nil {
			return nil, err
		}
		if err := <-fill(source, label); err != nil {
			return nil, err
		}
		return map[string]*state{key: &after}, s.backend.node.Release(ctx, handle)
	})
}

// fill writes as a user does, who is another process: on another thread, whose syncs always take effect.
func fill(source backends.Source, label string) <-chan error {
	done := make(chan error, 1)
	go func() {
		switch source := source.(type) {
		case backends.Directory:
			done <- fillDirectory(source.Path, label)
		case backends.Device:
			done <- fillImage(source.Path, label)
		default:
			done <- fmt.Errorf("the source is a %T", source)
		}
	}()
	return done
}

func (s *script) expand(ctx context.Context, name string, size int64) error {
	key := "volume/" + name
	return s.do("expand "+name, false, func() (map[string]*state, error) {
		after, handle := s.get(key)
		after.SizeBytes = size
		_, err := s.backend.controller.Expand(ctx, handle, backends.CapacityRange{RequiredBytes: size})
		return map[string]*state{key: &after}, err
	})
}

func (s *script) modify(ctx context.Context, name string, mutable local.Mutable) error {
	key := "volume/" + name
	return s.do("modify "+name, false, func() (map[string]*state, error) {
		after, handle := s.get(key)
		if mutable.OnDelete != nil {
			after.OnDelete = *mutable.OnDelete
		}
		if mutable.ReadAheadKiB != nil {
			after.ReadAhead = *mutable.ReadAheadKiB
		}
		return map[string]*state{key: &after}, s.backend.controller.Modify(ctx, handle, &mutable)
	})
}

func (s *script) snapshot(ctx context.Context, name, volume string) error {
	key := "snapshot/" + name
	return s.do("snapshot "+volume+" as "+name, false, func() (map[string]*state, error) {
		source, handle := s.get("volume/" + volume)
		made, err := s.backend.controller.CreateSnapshot(ctx, backends.SnapshotSpec{Name: name, Volume: handle})
		if err != nil {
			return nil, err
		}
		s.setHandle(key, made.Handle)
		return map[string]*state{key: {SizeBytes: source.SizeBytes, Source: handle, Content: source.Content}}, nil
	})
}

func (s *script) group(ctx context.Context, name string, volumes ...string) error {
	return s.do("group snapshot "+name, false, func() (map[string]*state, error) {
		spec := backends.GroupSpec{Name: name}
		for _, v := range volumes {
			_, handle := s.get("volume/" + v)
			spec.Volumes = append(spec.Volumes, handle)
		}
		g, err := s.backend.controller.CreateGroup(ctx, spec)
		if err != nil {
			return nil, err
		}
		made := groupState(g)
		change := map[string]*state{"group/" + name: &made}
		s.setHandle("group/"+name, g.Handle)
		for i, v := range volumes {
			source, handle := s.get("volume/" + v)
			member := "snapshot/" + g.Snapshots[i].Name
			s.setHandle(member, g.Snapshots[i].Handle)
			change[member] = &state{SizeBytes: source.SizeBytes, Source: handle, Group: g.Handle, Content: source.Content}
		}
		return change, nil
	})
}

func (s *script) remove(ctx context.Context, name string) error {
	return s.do("delete "+name, false, func() (map[string]*state, error) {
		before, handle := s.get("volume/" + name)
		change := map[string]*state{"volume/" + name: nil}
		if before.OnDelete == "retain" {
			change["retained/"+name] = &state{SizeBytes: before.SizeBytes, Content: before.Content}
		}
		return change, s.backend.controller.Delete(ctx, handle)
	})
}

func (s *script) removeSnapshot(ctx context.Context, name string) error {
	return s.do("delete snapshot "+name, false, func() (map[string]*state, error) {
		_, handle := s.get("snapshot/" + name)
		return map[string]*state{"snapshot/" + name: nil}, s.backend.controller.DeleteSnapshot(ctx, handle)
	})
}

func (s *script) removeGroup(ctx context.Context, name string, members int) error {
	return s.do("delete group "+name, false, func() (map[string]*state, error) {
		_, handle := s.get("group/" + name)
		change := map[string]*state{"group/" + name: nil}
		for i := range members {
			change[fmt.Sprintf("snapshot/%s/%d", name, i)] = nil
		}
		return change, s.backend.controller.DeleteGroup(ctx, handle)
	})
}
