package node

import (
	"context"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// Unpublish undoes Publish: it unmounts every layer at the target and removes the target. It succeeds if the volume is
// not published there or not known, and takes down what an interrupted call left there. It never removes a directory or
// file that holds data and is not a mount.
//
// Kinds: Invalid for a path that is not absolute or is neither directory nor file; InUse when something is
// open on the target's mount, or data is in the target itself; Unavailable when the context ended.
func (s *Service) Unpublish(ctx context.Context, volume, targetPath string) error {
	s.failures.forget(attempt{volume, filepath.Clean(targetPath)})
	return s.act(ctx, "unpublish", volume, func(ctx context.Context) error { return s.unpublish(ctx, volume, targetPath) })
}

func (s *Service) unpublish(ctx context.Context, volume, targetPath string) error {
	target, err := safepath.Absolute(targetPath)
	if err != nil {
		return err
	}
	if owner := s.ledger.Owner(target); owner != "" && owner != volume {
		s.log.WarnContext(ctx, "not published here: the path is in use by another volume", "volume", volume, "path", target,
			"owner", owner)
		return nil
	}
	if err := mount.Unmount(ctx, target); err != nil {
		return s.namingHoldersOf(ctx, err, target)
	}
	if err := removeEmpty(target); err != nil {
		return err
	}
	record := s.ledger.Get(volume)
	if _, recorded := record.Publication(target); recorded {
		s.drop(ctx, record.WithoutPublication(target))
	}
	return nil
}
