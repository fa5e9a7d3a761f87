package node

import (
	"context"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// Unpublish undoes Publish: every layer that is mounted at the target is taken down and the target
// removed. A volume that is not published there, or not known, is unpublished: no error; but what a call
// that was cut short left there is taken down. A directory or file that holds data and is no mount is never
// removed.
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
