package node

import (
	"context"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// unstaging is the state of one call of Unstage during its phases.
type unstaging struct {
	service *Service
	path    string
	record  ledger.Record
	staged  ledger.Staging // what to take down
}

// unstagePhases returns the phases of Unstage in their order.
func unstagePhases() []phase[*unstaging] {
	return []phase[*unstaging]{
		{"published", (*unstaging).checkUnpublished},
		{"work", (*unstaging).endWork},
		{"find", (*unstaging).checkOwner},
		{"find", (*unstaging).find},
		{"published", (*unstaging).checkShown},
		{"clear", (*unstaging).clear},
		{"release", (*unstaging).release},
	}
}

// Unstage undoes Stage. It succeeds if the volume is not staged at the path, and takes down what an interrupted call
// left there.
//
// Kinds: Invalid for a path that is not absolute; InUse, naming the targets, while the volume is published, and while
// something else uses it; Busy while the background work of Stage, which is told to stop, has not ended; Unavailable
// when the context ended, and while a record cannot be read: that of the volume, or one that may be of what is mounted.
func (s *Service) Unstage(ctx context.Context, volume, stagingPath string) error {
	path, err := safepath.Absolute(stagingPath)
	if err != nil {
		return failed("unstage", volume, err)
	}
	s.failures.forget(attempt{volume, path})
	if owner := s.ledger.Owner(path); owner != "" && owner != volume {
		s.log.WarnContext(ctx, "not staged here: the path is in use by another volume", "volume", volume, "path", path,
			"owner", owner)
		return nil
	}
	return s.act(ctx, "unstage", volume, func(ctx context.Context) error {
		if err := s.known(ctx, volume); err != nil {
			return err
		}
		resume, err := s.pauseTrim(ctx, volume)
		if err != nil {
			return err
		}
		defer resume()
		record := s.ledger.Get(volume)
		un := &unstaging{service: s, path: asRecorded(record, path), record: record}
		return runPhases(ctx, un, unstagePhases())
	})
}

// checkUnpublished refuses while the volume is published, and drops publications that are not mounted from the record.
func (un *unstaging) checkUnpublished(ctx context.Context) error {
	record, live := un.service.livePublications(ctx, un.record)
	if len(live) > 0 {
		return backends.Errorf(backends.InUse, "it is still published at %s: unpublish it first", strings.Join(live, ", "))
	}
	un.record = record
	return nil
}

// livePublications returns the record without the publications that are not mounted, and the targets of the others. It
// also drops an adopted publication whose target belongs to another volume by now. An adopted publication is not live
// if unstaging frees nothing.
func (s *Service) livePublications(ctx context.Context, record ledger.Record) (ledger.Record, []string) {
	var live []string
	frees := record.Staged == nil || s.frees(record.Staged.Source)
	for _, p := range record.Published {
		mounted, err := mount.Mounted(ctx, p.Target)
		if err == nil && !mounted || p.Adopted && s.ledger.Owner(p.Target) != "" {
			record = record.WithoutPublication(p.Target)
			continue
		}
		if frees || !p.Adopted {
			live = append(live, p.Target)
		}
	}
	return record, live
}

// frees reports whether unstaging a volume with this source frees something that a remaining mount of the volume needs.
// Unstaging a network filesystem does not: its other mounts keep working.
func (s *Service) frees(source ledger.Source) bool {
	return s.features.Release != nil || source.Kind == ledger.Device
}

// checkOwner refuses if something is mounted that no record says is this volume's, while a record cannot be read: it
// may be the volume of that record. Kinds: Unavailable.
func (un *unstaging) checkOwner(ctx context.Context) error {
	staged, unknown := un.record.Staged, un.service.ledger.Unknown()
	if unknown == nil || staged != nil && staged.Path == un.path {
		return nil
	}
	for _, place := range []string{un.path, devicePlace(un.path)} {
		mounted, err := mount.Mounted(ctx, place)
		if err != nil {
			return err
		}
		if mounted {
			return backends.Errorf(backends.Unavailable, "what is mounted at %s may be another volume: %w", place, unknown)
		}
	}
	return nil
}

// find determines what to take down: the staging that is recorded at the path, or else what a call whose record is lost
// may have left there.
func (un *unstaging) find(ctx context.Context) error {
	switch staged := un.record.Staged; {
	case staged != nil && staged.Path == un.path:
		un.staged = *staged
		return nil
	case staged != nil:
		un.staged = ledger.Staging{Path: un.path, Source: ledger.Source{Kind: ledger.Directory}}
		return nil
	}
	un.staged = ledger.Staging{Path: un.path}
	remote, err := showsRemote(ctx, un.path)
	if err != nil {
		return err
	}
	source, err := un.askSource(ctx, remote)
	switch kind := kindOf(err); {
	case err == nil:
		un.staged.Source, err = recordedSource(source)
		return err
	case remote:
	case kind == backends.Busy || kind == backends.Unavailable || kind == backends.Unusable:
		return err
	}
	// Any other answer is as good as none: there is no such volume, or the backend cannot tell without the attributes that
	// only Stage gets.
	return nil
}

// askSource asks the backend for the source of a volume whose staging record is lost. A backend that does not note use
// is asked only for a device: nothing else needs to be freed, and a server that may be dead is not asked. A backend has
// little time to answer if a remote filesystem is mounted at the staging path: its server may be dead, and the kernel
// knows what is mounted.
func (un *unstaging) askSource(ctx context.Context, remote bool) (backends.Source, error) {
	asked := backends.Attachment{Handle: un.record.Volume}
	if un.service.features.Release == nil {
		asked.Type = backends.Block
	}
	if !remote {
		return un.service.backend.Source(ctx, asked)
	}
	ctx, cancel := context.WithTimeout(ctx, un.service.limits.answerTime)
	defer cancel()
	call := deadline.Call{Name: "asking what volume " + asked.Handle + " is"}
	return deadline.Do(ctx, call, func(ctx context.Context) (backends.Source, error) {
		return un.service.backend.Source(ctx, asked)
	}, un.unuse)
}

// answerTime is how long a backend has to return the source of a volume that shows a remote filesystem.
const answerTime = time.Second

// unuse undoes a late answer of Source, which noted the volume as in use.
func (un *unstaging) unuse(backends.Source) {
	if release := un.service.features.Release; release != nil {
		_ = release.Release(context.Background(), un.record.Volume) // No caller is left to report the error to.
	}
}

// clear unmounts the volume and frees its device.
func (un *unstaging) clear(ctx context.Context) error {
	return un.service.clear(ctx, un.record.Volume, un.staged, nil)
}

// release removes the staging from the record and tells the backend, unless the volume is staged elsewhere.
func (un *unstaging) release(ctx context.Context) error {
	if un.record.Staged != nil && un.record.Staged.Path != un.path {
		return nil
	}
	return un.service.forget(ctx, un.record.WithStaging(nil).WithoutAdopted())
}
