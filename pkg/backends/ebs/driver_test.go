package ebs_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// driver is a process that runs the backend.
type driver struct {
	*testing.T
	backends.Backend
	f       backends.Features
	node    backends.NodeBackend
	patient bool // whether its callers set no deadline, where a test says so
}

// open starts a process.
func open(t *testing.T, w *region.Region, edit func(*ebs.Config)) driver {
	t.Helper()
	d := ebs.Definition()
	options := backends.Options{Driver: "ebs.csi.stowage.dev", DataDir: t.TempDir(), Config: d.NewConfig(),
		Log: slog.New(slog.DiscardHandler)}
	w.Configure(&options)
	if edit != nil {
		edit(options.Config.(*ebs.Config))
	}
	instance, err := d.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return driver{T: t, Backend: instance.Controller, node: instance.Node,
		f: backends.Resolve(instance.Controller, instance.Node)}
}

func (d driver) make(name string) *backends.Volume {
	d.Helper()
	v, err := d.Create(d.Context(), region.Spec(name))
	if err != nil {
		d.Fatal(err)
	}
	return v
}

// within bounds a call's time.
func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func TestOptionsAreChecked(t *testing.T) { synctest.Test(t, optionsAreChecked) }

func optionsAreChecked(t *testing.T) {
	d := ebs.Definition()
	w := region.New(t, region.Quick(), 0)
	for name, edit := range map[string]func(*backends.Options){
		"no region":          func(o *backends.Options) { o.Config.(*ebs.Config).AWS.Region = "" },
		"no credentials":     func(o *backends.Options) { o.Config.(*ebs.Config).AWS.Credentials = nil },
		"a wrong node ID":    func(o *backends.Options) { o.NodeID = "node-1" },
		"less than no slots": func(o *backends.Options) { o.Config.(*ebs.Config).ReservedAttachments = -1 },
		"another's config":   func(o *backends.Options) { o.Config = 1 },
	} {
		options := backends.Options{Driver: "ebs.csi.stowage.dev", Config: d.NewConfig(), Log: slog.New(slog.DiscardHandler)}
		w.Configure(&options)
		edit(&options)
		if _, err := d.Open(t.Context(), options); !backends.Is(err, backends.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}

// undecided reports whether the outcome of a call is open, so that the call must be repeated.
func undecided(err error) bool {
	return backends.Is(err, backends.Busy) || backends.Is(err, backends.Unavailable)
}
