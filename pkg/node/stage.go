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

// preparation returns the phases that come first for every volume. They change nothing that is in order.
func preparation() []phase[*staging] {
	return []phase[*staging]{
		{"request", (*staging).check},
		{"work", (*staging).awaitWork},
		{"find", (*staging).find},
		{"compare", (*staging).compare},
	}
}

// recipe is how one kind of volume is staged.
type recipe struct {
	kind ledger.Kind
	// place is where the staged volume shows.
	place string
	// holds reports whether the mount at the place is the volume.
	holds func(*staging, context.Context, mount.State) (bool, error)
	// phases bring the volume to its place. Each also tolerates a volume that an interrupted call left at its place. The
	// own phase follows them for every kind.
	phases []phase[*staging]
}

// recipeFor returns the recipe for a source and a request. Kinds: Unsupported for an impossible combination.
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

// devicePlace returns the file that shows the device of a volume that is staged raw.
func devicePlace(stagingPath string) string { return filepath.Join(stagingPath, "device") }

// Stage makes a volume ready at the staging path, which exists. Staging again in the same way succeeds without work. A
// call that fails takes down what it made, as far as that is possible.
//
// Kinds: those of backends.NodeBackend's Source; Invalid for a request that cannot be met, also when the device holds
// another filesystem than asked for, or none and may not be written to; Exists when the volume is staged elsewhere or
// in another way, or something else is mounted at the path; InUse; Busy when work that takes longer than the call goes
// on in the background, for the next call to wait for, or a tool of an earlier process still works on the device;
// Unavailable when the device is not (yet) the right one, or the context ended. In the latter case the cleanup, or an
// operation that hangs, may go on in the background; calls for the volume fail with Unavailable until it has ended. A
// call that leaves something behind fails with Busy, Exhausted or Unavailable, whatever else is wrong.
func (s *Service) Stage(ctx context.Context, request StageRequest) error {
	var cause atomic.Pointer[error] // known before the cleanup, which may take longer than there is time
	err := s.act(ctx, "stage", request.Volume, func(ctx context.Context) error {
		if err := s.known(ctx, request.Volume); err != nil {
			return err
		}
		resume, err := s.pauseTrim(ctx, request.Volume)
		if err != nil {
			return err
		}
		defer resume()
		st := &staging{service: s, request: request, record: s.ledger.Get(request.Volume)}
		err = st.run(ctx)
		first := err // not err itself, which the cleanup changes
		cause.Store(&first)
		switch {
		case err == nil, st.worked():
		case st.begun:
			err = withCleanup(err, st.takeDown(ctx))
		case st.taken:
			err = withCleanup(err, st.giveBack(ctx))
		}
		st.closeDevice()
		return st.staysStaged(ctx, err)
	})
	if why := cause.Load(); why != nil && *why != nil && !errors.Is(err, *why) {
		err = failed("stage", request.Volume, backends.Errorf(unfinished(kindOf(*why)),
			"%w; what it made is still being taken down", *why))
	}
	s.failures.note(attempt{request.Volume, filepath.Clean(request.StagingPath)}, reasonUnstaged, err)
	return err
}

// run runs all phases: the preparation, those of the recipe unless the volume is at its place, and own if this call or
// an earlier one did work.
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

// withImage adds to an error the image that a loop device stands for: when a person looks, the device is gone.
func (st *staging) withImage(err error) error {
	if err == nil || st.device == nil || !st.device.Loop {
		return err
	}
	return backends.Errorf(kindOf(err), "%w (%s is a loop device of the image %s)", err, st.device.Path,
		st.want.Source.Path)
}
