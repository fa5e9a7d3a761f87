package node

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/node/setup"
)

// preparation is what comes first for every volume. It changes nothing that is well.
func preparation() []phase[*staging] {
	return []phase[*staging]{
		{"request", (*staging).check},
		{"work", (*staging).awaitWork},
		{"find", (*staging).find},
		{"compare", (*staging).compare},
	}
}

// recipe is how one form of volume is staged.
type recipe struct {
	kind ledger.Kind
	// place is where what is staged shows.
	place string
	// holds reports whether what is mounted at the place is the volume.
	holds func(*staging, context.Context, mount.State) (bool, error)
	// phases lead from nothing to the volume at its place. Each also stands it when the volume is at its
	// place already, left by a call that was cut short. What follows them, for all, is own.
	phases []phase[*staging]
}

// recipeFor holds the phase lists of staging. Kinds: Unsupported for a combination that cannot be.
func recipeFor(source backends.Source, request StageRequest) (recipe, error) {
	block := request.Use.Type == backends.Block
	switch source.(type) {
	case backends.Device:
		if block {
			return recipe{ledger.Device, devicePlace(request.StagingPath), (*staging).holdsNode, []phase[*staging]{
				{"prove", (*staging).proveDevice},
				{"bind", (*staging).bindDevice},
			}}, nil
		}
		return recipe{ledger.Device, request.StagingPath, (*staging).holdsDevice, []phase[*staging]{
			{"prove", (*staging).proveDevice},
			{"probe", (*staging).probe},
			{"check", (*staging).checkFilesystem},
			{"format", (*staging).format},
			{"mount", (*staging).mountDevice},
			{"grow", (*staging).growMounted},
		}}, nil
	case backends.Directory:
		if !block {
			return recipe{ledger.Directory, request.StagingPath, (*staging).holdsDirectory, []phase[*staging]{
				{"bind", (*staging).bindDirectory},
			}}, nil
		}
	case backends.Export:
		if !block {
			return recipe{ledger.Export, request.StagingPath, (*staging).holdsExport, []phase[*staging]{
				{"mount", (*staging).mountExport},
			}}, nil
		}
	}
	return recipe{}, backends.Errorf(backends.Unsupported,
		"a volume of this backend has no device that could be handed out raw: use access type %s", backends.Mount)
}

// devicePlace is the file that shows the device of a volume that is staged raw.
func devicePlace(stagingPath string) string { return filepath.Join(stagingPath, "device") }

// Stage makes a volume ready at the staging path, which exists. Staging again in the same way succeeds
// without work. After a failure nothing that this call made is left, as far as it can be taken down.
//
// Kinds: those of backends.NodeBackend's Source; Invalid for a request that cannot be met, also when the device holds
// another filesystem than asked for, or none and may not be written to; Exists when the volume is staged elsewhere or
// in another way, or something else is mounted at the path; InUse; Busy when what takes longer than the call goes on in
// the background, for the next call to wait for, or a tool of an earlier process still works on the device; Unavailable
// when the device is not (yet) the right one, or the context ended. When that is so, the taking down may go on for a
// while in the background, and so may what hangs; calls for the volume fail with Unavailable until it has ended. So
// does one that leaves something, whatever else is wrong.
func (s *Service) Stage(ctx context.Context, request StageRequest) error {
	var cause atomic.Pointer[error] // known before what was made is taken down, which may take longer than there is time
	err := s.act(ctx, "stage", request.Volume, func(ctx context.Context) error {
		resume, err := s.pauseTrim(ctx, request.Volume)
		if err != nil {
			return err
		}
		defer resume()
		st := &staging{service: s, request: request, record: s.ledger.Get(request.Volume)}
		err = st.run(ctx)
		first := err // not err itself, which the taking down goes on to change
		cause.Store(&first)
		switch {
		case err == nil, st.worked():
		case st.begun:
			err = withCleanup(err, st.takeDown(ctx))
		case st.taken:
			err = withCleanup(err, st.giveBack(ctx))
		}
		st.closeDevice()
		return st.staysStaged(err)
	})
	if why := cause.Load(); why != nil && *why != nil && !errors.Is(err, *why) {
		err = failed("stage", request.Volume, backends.Errorf(unfinished(kindOf(*why)),
			"%w; what it made is still being taken down", *why))
	}
	s.failures.note(attempt{request.Volume, filepath.Clean(request.StagingPath)}, reasonUnstaged, err)
	return err
}

// run goes through all phases: the preparation, those of the recipe unless the volume is at its place,
// and own if there was work to do now or before.
func (st *staging) run(ctx context.Context) error {
	if err := runPhases(ctx, st, preparation()); err != nil {
		return err
	}
	strategy := setup.Mountpoint{Mounted: st.settled}
	owner := setup.Ownership{Debt: debt{st}, Apply: func(ctx context.Context) error {
		return runPhases(ctx, st, []phase[*staging]{{"own", (*staging).own}})
	}}
	didWork, err := setup.RunOwned(ctx, strategy, owner, st.build)
	if err == nil {
		err = st.forgetWork(ctx)
	}
	if err == nil && didWork {
		st.service.log.InfoContext(ctx, "staged", "volume", st.request.Volume, "path", st.request.StagingPath,
			"from", st.want.Source.Path, "device", st.want.Source.DevicePath, "filesystem", st.want.Source.FSType)
	}
	return err
}

// build runs the recipe's phases.
func (st *staging) build(ctx context.Context) (didWork bool, err error) {
	st.begun = !st.present
	if st.begun {
		err = st.service.checkShown(ctx, st.request.StagingPath)
	}
	if err == nil {
		err = st.withImage(runPhases(ctx, st, st.recipe.phases))
	}
	return st.begun, err
}

// withImage says in an error which image a loop device stands for: the device is gone by the time that a person looks.
func (st *staging) withImage(err error) error {
	if err == nil || st.device == nil || !st.device.Loop {
		return err
	}
	return backends.Errorf(kindOf(err), "%w (%s is a loop device of the image %s)", err, st.device.Path,
		st.want.Source.Path)
}
