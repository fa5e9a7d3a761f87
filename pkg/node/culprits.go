package node

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/node/holders"
)

// searchTime bounds the search for those who keep a volume in use.
const searchTime = 2 * time.Second

// namingHolders adds to an error that says that something is in use by whom, as far as that can be seen.
// Any other error, and none, is returned as it is.
func (s *Service) namingHolders(ctx context.Context, err error, subject holders.Subject) error {
	if !backends.Is(err, backends.InUse) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.searchTime)
	defer cancel()
	// Reading what a process has in memory waits for that process (mmap_lock), which may hang itself.
	call := deadline.Call{Name: "looking for who uses a volume"}
	found, failed := deadline.Do(ctx, call,
		func(ctx context.Context) (holders.Found, error) { return holders.Of(ctx, subject), nil }, nil)
	if failed != nil {
		return err
	}
	return backends.Errorf(backends.InUse, "%w: %s", err, found)
}

// namingHoldersOf is namingHolders for what is mounted at a path.
func (s *Service) namingHoldersOf(ctx context.Context, err error, path string) error {
	if subject, ok := holders.OfMount(path); err != nil && ok {
		return s.namingHolders(ctx, err, subject)
	}
	return err
}
