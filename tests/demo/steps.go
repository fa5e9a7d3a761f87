package main

import (
	"context"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

const gib = 1 << 30

// group is the pod's fsGroup.
const group = 4321

// demo is shared by the steps.
type demo struct {
	driver    *orchestrator.Driver
	client    *orchestrator.Client
	workspace *orchestrator.Workspace

	volume   *orchestrator.Volume // the first volume, ext4
	snapshot *orchestrator.Snapshot
	restored *orchestrator.Volume // from snapshot
	grown    *orchestrator.Volume // the volume that grows online; may be volume

	before, after string // checksums of the data from before and after the snapshot
}

// The files of the workload.
const (
	fileBefore = "before-the-snapshot"
	fileAfter  = "after-the-snapshot"
)

// namedStep is a step to run.
type namedStep struct {
	title string
	do    func(context.Context, *step) error
}

func (d *demo) steps() []namedStep {
	return []namedStep{
		{"Start stowage standalone", d.start},
		{"Probe, plugin info, capabilities", d.identify},
		{"Create a 1 GiB ext4 volume", d.create},
		{"Stage and publish it for group 4321", d.mount},
		{"Write 64 MiB as a non-root process", d.write},
		{"Volume stats", d.stats},
		{"Snapshot while it is mounted", d.takeSnapshot},
		{"Write on, restore the snapshot", d.restore},
		{"kill -9 the driver, volumes mounted", d.kill},
		{"Start again, replay every call", d.replay},
		{"Grow online while mounted", d.grow},
		{"A class with a typo", d.refuse},
		{"Unpublish, unstage, delete all", d.tearDown},
		{"Stop the driver", d.stop},
		{"Prove that nothing is left", d.nothingLeft},
	}
}

// class returns the parameters of the StorageClass.
func class(fstype string) map[string]string {
	return map[string]string{"pool": "image", "csi.storage.k8s.io/fstype": fstype}
}

func claim(name, fstype string) orchestrator.Claim {
	return orchestrator.Claim{Name: name, Bytes: gib, Parameters: class(fstype), MountGroup: "4321"}
}

// provision creates, stages and publishes a volume.
func (d *demo) provision(ctx context.Context, claim orchestrator.Claim) (*orchestrator.Volume, error) {
	made, err := d.client.Provision(ctx, claim)
	if err != nil {
		return nil, err
	}
	if err := d.client.Stage(ctx, made); err != nil {
		return nil, err
	}
	return made, d.client.Publish(ctx, made)
}
