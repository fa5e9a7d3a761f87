package node

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/stats"
)

// Stats measures a volume at a path at which it is staged or published. Kinds: NotFound when it is not there;
// Unavailable when its filesystem or device does not answer.
func (s *Service) Stats(ctx context.Context, volume, path string) (Stats, error) {
	return look(ctx, s, "measure", volume, path, func(ctx context.Context) (Stats, error) {
		at, err := s.locate(ctx, volume, path)
		if err != nil {
			return Stats{}, err
		}
		return measure(ctx, at)
	})
}

func measure(ctx context.Context, at shown) (Stats, error) {
	if at.staged.Type == backends.Block {
		size, err := stats.Device(ctx, at.place)
		return Stats{Bytes: Usage{Total: size}, Block: true}, err
	}
	bytes, inodes, err := stats.Filesystem(ctx, at.place)
	return Stats{Bytes: Usage(bytes), Inodes: Usage(inodes)}, err
}
