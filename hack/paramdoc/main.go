package main

import (
	"fmt"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/all"
	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/pkg/params"
	"github.com/stowage-csi/stowage/pkg/params/paramdoc"
)

// secrets says what becomes of the keys that name Secrets, all of which are ignored.
const secrets = "The driver ignores the keys that name Secrets. In a cluster with the installed policies, the API\n" +
	"server refuses a new class with one of them ([install](guides/install.md))."

func main() {
	if err := paramdoc.Render(os.Stdout, sections(all.Registry())); err != nil {
		fmt.Fprintln(os.Stderr, "paramdoc:", err)
		os.Exit(1)
	}
}

func sections(registry backends.Registry) []paramdoc.Section {
	list := []paramdoc.Section{{
		Title:  "Every backend: StorageClass",
		Intro:  "What the node obeys, whatever the backend.",
		Target: &classes.Settings{},
	}, {
		Title:  "Every backend: contents of other volumes",
		Intro:  "What the controller obeys, whatever the backend.",
		Target: &params.Conversion{},
	}, {
		Title:  "Every backend: what the sidecars add",
		Intro:  "With `--extra-create-metadata` and the like. A class need not name them.\n\n" + secrets,
		Target: &params.Metadata{},
	}, {
		Title:  "Every backend: what csi-snapshotter adds",
		Intro:  secrets,
		Target: &params.SnapshotMetadata{},
	}}
	for _, definition := range registry {
		list = append(list, sectionsOf(definition)...)
	}
	return list
}

func sectionsOf(definition backends.Definition) []paramdoc.Section {
	var list []paramdoc.Section
	for _, part := range []struct {
		kind, intro string
		target      func() any
	}{
		{"StorageClass", definition.Summary, definition.NewParameters},
		{"VolumeAttributesClass", "What can be changed while a volume is in use.", definition.NewMutable},
		{"VolumeSnapshotClass", "", definition.NewSnapshotParameters},
	} {
		if part.target == nil || len(params.Describe(part.target())) == 0 {
			continue
		}
		list = append(list, paramdoc.Section{Title: definition.Name + ": " + part.kind, Intro: part.intro,
			Target: part.target()})
	}
	return list
}
