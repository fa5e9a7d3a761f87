package sample_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/sample"
)

func TestConformance(t *testing.T) {
	h := backendtest.Over(sample.Definition(), nil)
	h.Spec = func(name string) backends.Spec {
		return backends.Spec{
			Name:       name,
			Capacity:   backends.CapacityRange{RequiredBytes: 8 << 20},
			Parameters: &sample.Parameters{},
			Access: backends.Access{
				Types: []backends.AccessType{backends.Mount},
				Modes: []backends.AccessMode{backends.SingleNodeWriter},
			},
		}
	}
	h.Broken = map[backends.Kind]func(testing.TB, *backends.Instance) error{
		backends.Unusable: func(tb testing.TB, instance *backends.Instance) error { return damaged(tb, h, instance) },
	}
	backendtest.Run(t, h)
}

// damaged returns the failure to create a volume whose name a volume with a damaged record has, after it has checked
// that this volume stays in every other respect, too.
func damaged(tb testing.TB, h backendtest.Harness, instance *backends.Instance) error {
	tb.Helper()
	v, err := instance.Controller.Create(tb.Context(), h.Spec("one"))
	if err != nil {
		tb.Fatal(err)
	}
	source, err := instance.Node.Source(tb.Context(), backends.Attachment{Handle: v.Handle, Type: backends.Mount})
	directory, isDirectory := source.(backends.Directory)
	if err = errors.Join(err, os.WriteFile(directory.Path+".json", []byte("{"), 0o600)); err != nil || !isDirectory {
		tb.Fatal(source, err)
	}
	if err := os.WriteFile(filepath.Join(directory.Path, "data"), []byte("kept"), 0o600); err != nil {
		tb.Fatal(err)
	}
	again := h.Reopen(tb, instance)
	release := again.Node.(backends.Releaser)
	if !release.Used(tb.Context(), v.Handle) {
		tb.Error("a volume with a damaged record is not in use any more")
	}
	if err := release.Release(tb.Context(), v.Handle); err != nil {
		tb.Errorf("Release of a volume with a damaged record: %v", err)
	}
	if err := again.Controller.Delete(tb.Context(), v.Handle); !backends.Is(err, backends.Unusable) {
		tb.Errorf("Delete of a volume with a damaged record: %v, want %q", err, backends.Unusable)
	}
	if data, err := os.ReadFile(filepath.Join(directory.Path, "data")); string(data) != "kept" {
		tb.Errorf("the data of the volume is %q, %v", data, err)
	}
	_, err = again.Controller.Create(tb.Context(), h.Spec("one"))
	return err
}
