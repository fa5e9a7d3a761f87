package main

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/all"
	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/pkg/params"
)

// Structs that are decoded together must be compatible: a mistake in a tag would cause a panic in a request.
func TestParametersFitTogether(t *testing.T) {
	for _, definition := range all.Registry() {
		if err := params.Check(definition.NewParameters(), &classes.Settings{}, &params.Metadata{}); err != nil {
			t.Errorf("%s: StorageClass: %v", definition.Name, err)
		}
		if definition.NewMutable != nil {
			if err := params.Check(definition.NewMutable(), &params.Metadata{}); err != nil {
				t.Errorf("%s: VolumeAttributesClass: %v", definition.Name, err)
			}
		}
		if definition.NewSnapshotParameters != nil {
			if err := params.Check(definition.NewSnapshotParameters(), &params.SnapshotMetadata{}); err != nil {
				t.Errorf("%s: VolumeSnapshotClass: %v", definition.Name, err)
			}
		}
	}
}
