package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/node/ownership"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// publishing is one call of Publish on its way through the phases.
type publishing struct {
	service *Service
	request PublishRequest
	record  ledger.Record
	want    ledger.Publication
	place   string      // where the volume shows in the staging path
	staged  mount.State // what shows there
	done    bool        // it is published already
}

// publishPhases is the order of publishing.
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

// Publish shows a staged volume at the target path, whose parent exists. Publishing again in the same
// way succeeds without work. After a failure the target is not left behind by this call.
//
// Kinds: Invalid for a request that cannot be met, also when the target is a symlink; InUse when the volume is not
// staged at the staging path or not in this way, when it may be published once only and is published elsewhere (CSI,
// NodePublishVolume, second table), and when its files belong to a pod of another group; Exists when it is published at
// the target in another way, or something else is mounted there; Busy while the files are given to a group, which goes
// on in the background.
func (s *Service) Publish(ctx context.Context, request PublishRequest) error {
	err := s.act(ctx, "publish", request.Volume, func(ctx context.Context) error {
		p := &publishing{service: s, request: request, record: s.ledger.Get(request.Volume)}
		return p.staysPublished(ctx, runPhases(ctx, p, publishPhases()))
	})
	s.failures.note(attempt{request.Volume, filepath.Clean(request.TargetPath)}, reasonHidden, err)
	return err
}

// check looks at the request alone.
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
	if safepath.Within(r.StagingPath, target) || safepath.Within(target, r.StagingPath) {
		return backends.Errorf(backends.Invalid,
			"the target path %s and the staging path %s are one, or one is in the other: unpublishing would unstage", target,
			r.StagingPath)
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

// checkStaged sees to it that the volume is staged, and in a way that allows what is asked for.
func (p *publishing) checkStaged(ctx context.Context) error {
	r, staged := p.request, p.record.Staged
	if staged == nil || staged.Path != r.StagingPath || staged.Pending {
		return p.notStaged()
	}
	if staged.Type != r.Use.Type {
		return backends.Errorf(backends.InUse, "it is staged at %s with access type %s: it cannot be published with %s",
			staged.Path, staged.Type, r.Use.Type)
	}
	if staged.ReadOnly && !p.want.ReadOnly {
		return backends.Errorf(backends.InUse, "it is staged at %s for reading only: it cannot be published for writing",
			staged.Path)
	}
	if err := p.checkOptions(*staged); err != nil {
		return err
	}
	p.place = placeOf(*staged)
	state, err := mount.Inspect(ctx, p.place)
	switch {
	case mount.Corrupted(err):
		return backends.Errorf(backends.InUse, "its mount at %s is corrupted: call NodeStageVolume again: %w", p.place, err)
	case err != nil:
		return err
	case !shows(state, *staged):
		return p.notStaged()
	}
	p.staged = state
	return nil
}

// checkOptions refuses options that a bind mount cannot have and that the staged volume has not. Of the
// options of a filesystem the labels are known; the others were given when it was staged, and are not asked for again.
func (p *publishing) checkOptions(staged ledger.Staging) error {
	if staged.Source.Kind == ledger.Directory {
		return mountoptions.Directory{}.Check("", p.request.MountOptions)
	}
	if labels := mount.SecurityLabels(p.request.MountOptions); labels != "" && labels != staged.Labels {
		return backends.Errorf(backends.InUse,
			"it is staged at %s with the SELinux labels %q: it cannot be published with %q", staged.Path, staged.Labels, labels)
	}
	return nil
}

func (p *publishing) notStaged() error {
	return backends.Errorf(backends.InUse, "volume %q is not staged at %s: call NodeStageVolume first", p.request.Volume,
		p.request.StagingPath)
}

// compare looks at what is at the target already.
func (p *publishing) compare(ctx context.Context) error {
	target := p.request.TargetPath
	before, recorded := p.record.Publication(target)
	recorded = recorded && !before.Adopted // What was adopted is known by what shows there.
	state, err := mount.Inspect(ctx, target)
	switch {
	case mount.Corrupted(err):
		return mount.Unmount(ctx, target)
	case err != nil || !state.Mounted:
		return err
	case !state.SameRoot(p.staged) && recorded:
		// The volume was staged anew since, and the target shows what it was before.
		return mount.Unmount(ctx, target)
	case !state.SameRoot(p.staged):
		return backends.Errorf(backends.Exists, "something else is mounted at %s: unmount it, or choose another path", target)
	case !recorded:
		before = ledger.Publication{Target: target, Mode: p.want.Mode, ReadOnly: state.ReadOnly}
	}
	if before != p.want {
		return backends.Errorf(backends.Exists,
			"it is published at %s already with mode %s and read-only %t, and asked for with %s and %t: unpublish it first",
			target, before.Mode, before.ReadOnly, p.want.Mode, p.want.ReadOnly)
	}
	p.done = true
	return compareOptions(target, p.request.MountOptions)
}

// checkExclusive refuses a second target for a volume that may have one only.
func (p *publishing) checkExclusive(ctx context.Context) error {
	record, targets := p.service.livePublications(ctx, p.record.WithoutPublication(p.want.Target))
	for _, target := range targets {
		if samePath(target, p.want.Target) {
			p.record = p.record.WithoutPublication(target)
			continue
		}
		other, _ := record.Publication(target)
		if exclusive(other.Mode) || exclusive(p.want.Mode) {
			return backends.Errorf(backends.InUse, "it is published at %s already, and with mode %s at one target only",
				strings.Join(targets, ", "), other.Mode)
		}
	}
	return nil
}

// samePath reports whether two paths are one but for symlinks above them, which what was adopted from the mount table
// has not.
func samePath(a, b string) bool {
	one, err := os.Stat(filepath.Dir(a))
	if err != nil || filepath.Base(a) != filepath.Base(b) {
		return false
	}
	other, err := os.Stat(filepath.Dir(b))
	return err == nil && os.SameFile(one, other)
}

// exclusive reports whether a volume in the mode has one target at most: all modes of a single node but
// the one for many writers (CSI, NodePublishVolume, second table).
func exclusive(mode backends.AccessMode) bool {
	switch mode {
	case backends.SingleNodeWriter, backends.SingleNodeReaderOnly, backends.SingleNodeSingleWriter:
		return true
	case backends.SingleNodeMultiWriter, backends.MultiNodeReaderOnly, backends.MultiNodeSingleWriter,
		backends.MultiNodeMultiWriter:
	}
	return false
}

// checkShown sees to it that the pod will see what is mounted at the target.
func (p *publishing) checkShown(ctx context.Context) error {
	if p.done {
		return nil
	}
	return p.service.checkShown(ctx, p.want.Target)
}

// put records the publication, before it is made.
func (p *publishing) put(context.Context) error {
	if before, ok := p.record.Publication(p.want.Target); ok && before == p.want {
		return nil
	}
	p.record = p.record.WithPublication(p.want)
	return p.service.ledger.Put(p.record)
}

// bind makes the target and shows the volume there. What it made goes again if that fails.
func (p *publishing) bind(ctx context.Context) error {
	if p.done {
		return nil
	}
	created, err := p.show()
	if err == nil {
		return nil
	}
	if created {
		err = withCleanup(err, removeEmpty(p.want.Target))
	}
	p.service.drop(ctx, p.record.WithoutPublication(p.want.Target))
	return err
}

func (p *publishing) show() (created bool, err error) {
	target, err := safepath.OpenTarget(p.want.Target)
	if backends.Is(err, backends.NotFound) {
		// NotFound would say that there is no such volume.
		return false, backends.Errorf(backends.Invalid, "the parent directory of the target must exist: %w", err)
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = target.Close() }() // opened for looking only
	if p.request.Use.Type == backends.Block {
		created, err = target.MakeFile(0o640)
	} else {
		created, err = target.MakeDir(0o750)
	}
	if err == nil && !created {
		err = checkHidesNothing(p.want.Target)
	}
	if err != nil {
		return created, err
	}
	_, err = mount.Bind(p.place, target, p.want.ReadOnly, p.request.MountOptions...)
	return created, err
}

// checkHidesNothing refuses a target that was there before and holds data: a mount over it would hide the
// data, and Unpublish could not remove the target. Kinds: InUse.
func checkHidesNothing(target string) error {
	entries, err := os.ReadDir(target)
	switch info, look := os.Lstat(target); {
	case err == nil && len(entries) > 0:
		return backends.Errorf(backends.InUse,
			"the target %s holds %q and more: a mount would hide it; empty it or choose another path", target, entries[0].Name())
	case look == nil && info.Mode().IsRegular() && info.Size() > 0:
		return backends.Errorf(backends.InUse,
			"the target %s is a file with data: a mount would hide it; choose another path", target)
	}
	return nil
}

// withCleanup adds what went wrong in cleaning up to the error that made it necessary. Something is left then.
func withCleanup(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	return backends.Errorf(unfinished(kindOf(err)), "%w (and afterwards: %w)", err, cleanup)
}
