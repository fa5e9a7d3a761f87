package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/tests/localpools"
)

// place is the location of the volume.
type place struct {
	Handle string
	Path   string // the image or the directory
}

// at returns the location of the volume: its own folder, or the one that the local backend chose.
func (w *world) at() place {
	if w.found.Handle != "" {
		return w.found
	}
	found := place{"v", w.path("volumes", "v")}
	if w.local {
		data, err := os.ReadFile(w.path("place"))
		if err != nil || json.Unmarshal(data, &found) != nil {
			return place{"none", w.path("none")} // not created yet
		}
	}
	w.found = found
	return found
}

// data is the image or the directory of the volume.
func (w *world) data() string { return w.at().Path }

// handle returns the handle of the only volume of a world.
func (w *world) handle() string { return w.at().Handle }

// shelf is a minimal backend: it has one volume, and records nothing.
type shelf struct{ *world }

// Source describes the volume.
func (s shelf) Source(context.Context, backends.Attachment) (backends.Source, error) {
	var stat unix.Stat_t
	if err := unix.Stat(s.data(), &stat); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "looking at the volume: %w", err)
	}
	if s.form == directory {
		return backends.Directory{Path: s.data()}, nil
	}
	return backends.Device{Path: s.data(), Image: true, Identity: backends.Identity{SizeBytes: stat.Size}}, nil
}

// backend opens the backend.
func (w *world) backend(ctx context.Context) (*backends.Instance, error) {
	if w.local {
		return local.Definition().Open(ctx, backends.Options{Driver: "local.chaos.test", DataDir: w.path("pool"),
			NodeID: "node", Config: localpools.Config()})
	}
	return &backends.Instance{Node: shelf{w}, Close: func(context.Context) error { return nil }}, nil
}

// makeVolume creates an empty volume.
func (w *world) makeVolume(ctx context.Context) error {
	if !w.local {
		if w.form == directory {
			return os.MkdirAll(w.data(), 0o755)
		}
		return errors.Join(os.MkdirAll(w.path("volumes"), 0o755), os.WriteFile(w.data(), nil, 0o600),
			os.Truncate(w.data(), w.mib<<20))
	}
	instance, err := w.backend(ctx)
	if err != nil {
		return err
	}
	parameters := &local.Parameters{Pool: "image"}
	if w.form == directory {
		parameters.Pool = "directory"
	}
	access := backends.Access{Types: []backends.AccessType{w.accessType()},
		Modes: []backends.AccessMode{backends.SingleNodeWriter}}
	made, err := instance.Controller.Create(ctx, backends.Spec{Name: "v",
		Capacity: backends.CapacityRange{RequiredBytes: w.mib << 20}, Parameters: parameters, Access: access})
	if err == nil {
		err = w.notePlace(ctx, instance, made.Handle)
	}
	return errors.Join(err, backendtest.Close(ctx, instance))
}

// notePlace records the location that the local backend chose for the volume.
func (w *world) notePlace(ctx context.Context, instance *backends.Instance, handle string) error {
	source, err := instance.Node.Source(ctx, backends.Attachment{Handle: handle, Type: w.accessType()})
	if err != nil {
		return err
	}
	at := place{Handle: handle}
	switch source := source.(type) {
	case backends.Device:
		at.Path = source.Path
	case backends.Directory:
		at.Path = source.Path
	default:
		return fmt.Errorf("the source is a %T", source)
	}
	data, err := json.Marshal(at)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(w.path("place"), data, 0o600), instance.Node.(backends.Releaser).Release(ctx, handle))
}
