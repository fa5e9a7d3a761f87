package backendtest

import "github.com/stowage-csi/stowage/pkg/backends"

// check checks one promise.
type check struct {
	name string
	run  func(w *world)
}

type group struct {
	name   string
	checks []check
}

// groups returns the checks for a backend with these features.
func groups(h Harness, f backends.Features) []group {
	all := []group{
		{"Definition", definitionChecks()},
		{"Features", featureChecks()},
		{"Create", append(thingChecks(volumes), createChecks()...)},
		{"Handles", handleChecks()},
		{"Delete", deleteChecks()},
		{"Node", nodeChecks(f)},
		{"Mode", modeChecks()},
	}
	add := func(offered bool, name string, checks ...[]check) {
		if offered {
			g := group{name: name}
			for _, c := range checks {
				g.checks = append(g.checks, c...)
			}
			all = append(all, g)
		}
	}
	add(f.Attach != nil, "Attach", attachChecks())
	add(f.Expand != nil, "Expand", expandChecks())
	add(f.Modify != nil, "Modify", modifyChecks())
	add(f.Prove != nil, "Prove", proofChecks())
	add(f.Clone != nil, "Clone", thingChecks(clones), cloneChecks())
	add(f.List != nil, "List", listChecks(volumes))
	add(f.Capacity != nil, "Capacity", capacityChecks())
	add(f.Health != nil, "Health", healthChecks(h))
	add(f.Topologist != nil, "Topology", topologyChecks())
	add(f.Snapshot != nil, "Snapshot", thingChecks(snapshots), snapshotChecks())
	add(f.Snapshot != nil, "Restore", thingChecks(restores), restoreChecks())
	add(f.Snapshots != nil, "ListSnapshots", listChecks(snapshots), listSnapshotChecks())
	add(f.Group != nil, "Group", thingChecks(snapshotGroups), groupChecks())
	add(h.Reopen != nil, "Reopen", reopenChecks())
	add(len(h.Lose) > 0, "Away", awayChecks(h))
	add(len(h.Broken) > 0, "Kinds", brokenChecks(h))
	return all
}
