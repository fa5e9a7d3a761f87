package sample

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// Parameters are the parameters of a StorageClass: none. Package params explains the tags of fields.
type Parameters struct{}

// Definition describes the backend.
func Definition() backends.Definition {
	return backends.Definition{
		Name:          "sample",
		Summary:       "directories of one disk: the smallest backend that keeps its volumes, to be copied",
		Inseparable:   true,
		NewParameters: func() any { return new(Parameters) },
		Open:          open,
	}
}

type backend struct {
	root string
	log  *slog.Logger

	turn    chan struct{} // holds one element while a call uses the volumes
	volumes map[string]*volume
}

// open reads all records. A record that cannot be read concerns only its own volume.
func open(ctx context.Context, options backends.Options) (*backends.Instance, error) {
	b := &backend{root: filepath.Join(options.DataDir, "volumes"), log: options.Log, turn: make(chan struct{}, 1),
		volumes: map[string]*volume{}}
	if err := durable.MakeAll(b.root, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(b.root)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		switch handle, state, _ := strings.Cut(entry.Name(), "."); state {
		case "json":
			b.volumes[handle] = b.read(handle)
		case "part":
			b.log.Info("removing what a crash left of a volume", "volume", handle, "error", b.erase(ctx, handle))
		}
	}
	return &backends.Instance{Controller: b, Node: b}, nil
}

func (b *backend) read(handle string) *volume {
	var v volume
	text, err := os.ReadFile(b.file(handle, ".json"))
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err == nil && v.Handle != handle {
		err = backends.Errorf(backends.Invalid, "it is of volume %q", v.Handle)
	}
	v.damage = err
	info, err := os.Stat(b.file(handle, ".json"))
	v.used = err != nil || info.Mode().Perm() == inUse // It is in use if that is unknown.
	return &v
}

// file returns the path of a volume's file. Only handles of this backend become paths.
func (b *backend) file(handle, ending string) string { return filepath.Join(b.root, handle+ending) }
