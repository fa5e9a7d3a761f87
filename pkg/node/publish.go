package node

import (
	"context"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/node/ownership"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// publishing is the state of one call of Publish during its phases.
type publishing struct {
	service *Service
	request PublishRequest
	record  ledger.Record
	want    ledger.Publication
	place   string      // where the volume is mounted in the staging path
	staged  mount.State // what is mounted there
	done    bool        // it is published already
}

// publishPhases returns the phases of Publish in their order.
func publishPhases() []phase[*publishing] {
	return []phase[*publishing]{
		{"request", (*publishing).check},
		{"staged", (*publishing).checkStaged},
		{"work", (*publishing).awaitWork},
		{"compare", (*publishing).compare},
		{"share", (*publishing).checkExclusive},
		{"show", (*publishing).checkShown},
		{"own", (*publishing).own},
		{"record", (*publishing).put},
		{"bind", (*publishing).bind},
		{"work", (*publishing).forgetWork},
	}
}

// Publish mounts a staged volume at the target path, whose parent exists. Publishing again in the same way succeeds
// without work. A call that fails leaves no target that it created.
//
// Kinds: Invalid for a request that cannot be met, also when the target is a symlink; InUse when the volume is not
// staged at the staging path or not in this way, when it may be published only once and is published elsewhere (CSI,
// NodePublishVolume, second table), and when its files belong to a pod of another group; Exists when it is published at
// the target in another way, or something else is mounted there; Busy while the files are being given to a group, which
// continues in the background.
func (s *Service) Publish(ctx context.Context, request PublishRequest) error {
	err := s.act(ctx, "publish", request.Volume, func(ctx context.Context) error {
		if err := s.known(ctx, request.Volume); err != nil {
			return err
		}
		p := &publishing{service: s, request: request, record: s.ledger.Get(request.Volume)}
		return p.staysPublished(ctx, runPhases(ctx, p, publishPhases()))
	})
	s.failures.note(attempt{request.Volume, filepath.Clean(request.TargetPath)}, reasonHidden, err)
	return err
}

// check validates the request alone.
func (p *publishing) check(context.Context) error {
	r := &p.request
	target, err := safepath.Absolute(r.TargetPath)
	if err != nil {
		return err
	}
	if r.StagingPath == "" {
		return backends.Errorf(backends.InUse, "the staging path is missing: call NodeStageVolume first and say where")
	}
	if r.StagingPath, err = safepath.Absolute(r.StagingPath); err != nil {
		return err
	}
	r.TargetPath = target
	given := r.StagingPath
	r.StagingPath = asRecorded(p.record, given)
	for _, path := range []string{given, r.StagingPath} {
		if safepath.Within(path, target) || safepath.Within(target, path) {
			return backends.Errorf(backends.Invalid,
				"the target path %s and the staging path %s are one, or one is in the other: unpublishing would unstage", target,
				path)
		}
	}
	p.want = ledger.Publication{Target: target, Mode: r.Use.Mode, ReadOnly: r.ReadOnly ||
		readOnly(r.Use.Mode, r.MountOptions)}
	if group := p.group(); group != "" {
		if _, err := ownership.ParseGID(group); err != nil {
			return err
		}
	}
	return mountoptions.Check(r.MountOptions)
}
