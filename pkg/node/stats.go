package node

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/stats"
)

// Stats measures a volume at a path at which it is staged or published. Kinds: NotFound when it is not
// there; Unavailable when its filesystem or device does not answer.
func (s *Service) Stats(_ context.Context, volume, path string) (Stats, error) {
	at, err := s.locate(volume, path)
	if err != nil {
		return Stats{}, failed("measure", volume, err)
	}
	measured, err := measure(at)
	return measured, failed("measure", volume, err)
}

func measure(at shown) (Stats, error) {
	if at.staged.Type == backends.Block {
		size, err := stats.Device(at.place)
		return Stats{Bytes: Usage{Total: size}, Block: true}, err
	}
	bytes, inodes, err := stats.Filesystem(at.place)
	return Stats{Bytes: Usage(bytes), Inodes: Usage(inodes)}, err
}
