package node

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/node/holders"
)

// searchTime bounds the search for the users of a volume.
const searchTime = 2 * time.Second

// namingHolders adds the users of a volume, as far as they can be seen, to an InUse error. Any other error, and nil, is
// returned unchanged.
func (s *Service) namingHolders(ctx context.Context, err error, subject holders.Subject) error {
	if !backends.Is(err, backends.InUse) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.searchTime)
	defer cancel()
	// Reading the memory map of a process waits for that process (mmap_lock), which may itself hang.
	call := deadline.Call{Name: "looking for who uses a volume"}
	found, failed := deadline.Do(ctx, call,
		func(ctx context.Context) (holders.Found, error) { return holders.Of(ctx, subject), nil }, nil)
	if failed != nil {
		return err
	}
	return backends.Errorf(backends.InUse, "%w: %s", err, found)
}

// namingHoldersOf is namingHolders for the mount at a path.
func (s *Service) namingHoldersOf(ctx context.Context, err error, path string) error {
	if subject, ok := holders.OfMount(path); err != nil && ok {
		return s.namingHolders(ctx, err, subject)
	}
	return err
}
