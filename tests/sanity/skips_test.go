package sanity

import (
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// skipped are the specs that csi-sanity skips for a driver without a capability, by a part of their text.
type skipped struct {
	feature string // as in backends.Features.Names; empty for what no backend has
	specs   []string
}

func skippable() []skipped {
	return []skipped{
		{"", []string{"already published but is inc"}}, // Nothing is attached for reading only.
		{"attach", []string{"ControllerPublishVolume", "ControllerUnpublishVolume", "volume lifecycle"}},
		{"limit", []string{"node max attach limit"}},
		{"expand", []string{"ExpandVolume [Controller Server]"}},
		{"clone", []string{"existing source volume", "the volume source volume"}},
		{"modify", []string{"ModifyVolume", "volume attribute class"}},
		{"list", []string{"ListVolumes"}},
		{"capacity", []string{"GetCapacity"}},
		{"health", []string{"ControllerGetVolumeHealth", "ControllerListVolumeHealth"}},
		{"snapshot", []string{"CreateSnapshot", "GetSnapshot", "DeleteSnapshot", "source snapshot"}},
		{"list-snapshots", []string{"ListSnapshots"}},
		{"group-snapshot", []string{"GroupController"}},
		{"topology", []string{"a snapshot with accessibility requirements"}},
		{"inspect", []string{"NodeGetStorageHealth"}},
	}
}

// maySkip reports whether a spec may be skipped for a backend with these features.
func maySkip(features backends.Features, text string) bool {
	has := features.Names()
	return slices.ContainsFunc(skippable(), func(s skipped) bool {
		isOf := func(spec string) bool { return strings.Contains(text, spec) }
		return !slices.Contains(has, s.feature) && slices.ContainsFunc(s.specs, isOf)
	})
}
