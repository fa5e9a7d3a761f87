package nfs

import (
	"fmt"

	"github.com/stowage-csi/stowage/pkg/backends"
)

const (
	// mostText is the maximum size of handles in bytes (CSI, "Size Limits"), and sufficient for any other short text.
	mostText = 128
	// mostName is the maximum size of names and fingerprints. CSI allows 128 bytes, and a byte that is not UTF-8 takes
	// three in a record.
	mostName = 4 * mostText
	// mostSettings is the maximum size in bytes of the map that carries the settings to the node (CSI, "Size Limits").
	mostSettings = 4 << 10
	// mostSubDir is the maximum size of a path.
	mostSubDir = 4095
)

// othersContext is the part of a volume context that is kept for the keys of the edge, which need 20 bytes, and
// of the orchestrator: csi-provisioner adds its identity, which contains the name of the driver.
const othersContext = 256

// checkContext refuses a volume whose volume context would be larger than CSI allows, because no node could stage it.
// Kinds: Invalid.
func checkContext(v *backends.Volume) error {
	size := 0
	for _, part := range []map[string]string{v.Attributes, v.Settings} {
		for key, value := range part {
			size += len(key) + len(value)
		}
	}
	if most := mostSettings - othersContext; size > most {
		return backends.Errorf(backends.Invalid,
			"the volume's server, share, subDir and settings have %d bytes, and there is room for %d in what a node gets: "+
				"use a shorter share or subDir", size, most)
	}
	return nil
}

// checkSizes refuses fields that are larger than this driver writes them.
func (r *record) checkSizes() error {
	if err := bounded("name or fingerprint", max(len(r.Name), len(r.Fingerprint)), mostName); err != nil {
		return err
	}
	for what, text := range map[string]string{"handle": r.Handle, "sourceSnapshot": r.SourceSnapshot,
		"sourceVolume": r.SourceVolume, "nfsVersion": r.NFSVersion, "onDelete": r.OnDelete} {
		if err := bounded(what, len(text), mostText); err != nil {
			return err
		}
	}
	if r.Group != nil {
		if err := bounded("group", max(len(r.Group.Handle), len(r.Group.ID), len(r.Group.Turn)), mostText); err != nil {
			return err
		}
	}
	settings := 0
	for key, value := range r.Settings {
		settings += len(key) + len(value)
	}
	if err := bounded("settings", settings, mostSettings); err != nil {
		return err
	}
	if err := bounded("subDir", len(r.SubDir), mostSubDir); err != nil {
		return err
	}
	if len(r.Members) > backends.MostMembers || len(r.Members) > 0 && r.Kind != groupKind {
		return fmt.Errorf("it has %d members: at most %d are allowed, of a group only", len(r.Members),
			backends.MostMembers)
	}
	return nil
}

func bounded(what string, bytes, most int) error {
	if bytes > most {
		return fmt.Errorf("%s has %d bytes: at most %d are allowed", what, bytes, most)
	}
	return nil
}
