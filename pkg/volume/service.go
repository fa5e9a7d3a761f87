package volume

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/classes"
)

// Observer is called after every backend operation.
type Observer func(operation string, took time.Duration, err error)

// Service runs the controller's operations on one backend.
type Service struct {
	backend  backends.Backend
	features backends.Features
	observe  Observer
}

// New returns a Service. The features are those of the undecorated backend.
func New(backend backends.Backend, features backends.Features, observe Observer) *Service {
	if observe == nil {
		observe = func(string, time.Duration, error) {}
	}
	return &Service{backend: backend, features: features, observe: observe}
}

// Features returns the optional interfaces of the backend.
func (s *Service) Features() backends.Features { return s.features }

// Get returns a volume. Kinds: NotFound.
func (s *Service) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	return observed(ctx, s, "get", handle,
		func(ctx context.Context) (*backends.Volume, error) { return s.backend.Get(ctx, handle) })
}

// Delete removes a volume; a missing volume counts as deleted. Kinds: InUse.
func (s *Service) Delete(ctx context.Context, handle string) error {
	err := s.run(ctx, "delete", handle, func(ctx context.Context) error { return s.backend.Delete(ctx, handle) })
	return unlessGone(err)
}

// Validate fails unless a volume can be used in the ways that access lists. Kinds: NotFound for the volume; Invalid,
// with the reason, when it cannot be used so.
func (s *Service) Validate(ctx context.Context, handle string, access backends.Access) error {
	found, err := s.Get(ctx, handle)
	if err != nil {
		return err
	}
	if access, err = InClass(access, found.Settings[classes.FSTypeKey]); err != nil {
		return err
	}
	return found.Access.Check(access)
}

// Expand grows a volume. Kinds: as backends.Expander; Unsupported.
func (s *Service) Expand(ctx context.Context, handle string, size backends.CapacityRange) (backends.Expansion, error) {
	if s.features.Expand == nil {
		return backends.Expansion{}, unsupported("expand volumes")
	}
	return observed(ctx, s, "expand", handle, func(ctx context.Context) (backends.Expansion, error) {
		return s.features.Expand.Expand(ctx, handle, size)
	})
}

// Modify sets mutable parameters. Kinds: as backends.Modifier; Unsupported.
func (s *Service) Modify(ctx context.Context, handle string, mutable any) error {
	if s.features.Modify == nil {
		return unsupported("modify volumes")
	}
	return s.run(ctx, "modify", handle,
		func(ctx context.Context) error { return s.features.Modify.Modify(ctx, handle, mutable) })
}

// Publish attaches a volume to a node. Kinds: as backends.Attacher; Unsupported.
func (s *Service) Publish(ctx context.Context, request backends.AttachRequest) (map[string]string, error) {
	if s.features.Attach == nil {
		return nil, unsupported("attach volumes: its nodes reach them without")
	}
	return observed(ctx, s, "attach", request.Handle, func(ctx context.Context) (map[string]string, error) {
		return s.features.Attach.Attach(ctx, request)
	})
}

// Unpublish detaches a volume from a node, or from all with an empty node; a missing volume counts as detached. Kinds:
// as backends.Attacher; Unsupported.
func (s *Service) Unpublish(ctx context.Context, handle, node string) error {
	if s.features.Attach == nil {
		return unsupported("detach volumes: its nodes reach them without")
	}
	err := s.run(ctx, "detach", handle,
		func(ctx context.Context) error { return s.features.Attach.Detach(ctx, handle, node) })
	return unlessGone(err)
}

// Capacity returns how much more can be provisioned. Kinds: Unsupported.
func (s *Service) Capacity(ctx context.Context, query backends.CapacityQuery) (backends.Capacity, error) {
	if s.features.Capacity == nil {
		return backends.Capacity{}, unsupported("tell its capacity")
	}
	return observed(ctx, s, "capacity", "",
		func(ctx context.Context) (backends.Capacity, error) { return s.features.Capacity.Capacity(ctx, query) })
}

// Health returns the issues of a volume. Kinds: NotFound; Unsupported.
func (s *Service) Health(ctx context.Context, handle string) ([]backends.HealthIssue, error) {
	if s.features.Health == nil {
		return nil, unsupported("tell the health of volumes")
	}
	return observed(ctx, s, "health", handle, func(ctx context.Context) ([]backends.HealthIssue, error) {
		return s.features.Health.Health(ctx, handle)
	})
}

// Pools returns the pools of the backend's volumes. Kinds: Unsupported.
func (s *Service) Pools(ctx context.Context) ([]backends.Pool, error) {
	if s.features.Pools == nil {
		return nil, unsupported("tell of pools")
	}
	return observed(ctx, s, "pools", "",
		func(ctx context.Context) ([]backends.Pool, error) { return s.features.Pools.Pools(ctx) })
}

// Machine returns the state of a node's machine. Kinds: as backends.MachineReporter; Unsupported.
func (s *Service) Machine(ctx context.Context, query backends.MachineQuery) (backends.Machine, error) {
	if s.features.Machines == nil {
		return backends.Machine{}, unsupported("tell the state of machines")
	}
	return observed(ctx, s, "machine", "",
		func(ctx context.Context) (backends.Machine, error) { return s.features.Machines.Machine(ctx, query) })
}
