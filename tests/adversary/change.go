package adversary

import (
	"context"
	"fmt"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// delete deletes a volume; while it is used that must be refused.
func (a *actor) delete(s Step, v *volume, company bool) {
	if v.used && a.setup.Apart {
		return // Nobody but the orchestrator knows.
	}
	r := request2(s, "DeleteVolume "+v.name, company)
	r.frees = true
	if used := v.used; used {
		r.refusals = []codes.Code{codes.FailedPrecondition}
	}
	r.send = func(ctx context.Context) (string, error) {
		_, err := a.controls().DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.id})
		return "", err
	}
	used := v.used
	v.leaving.Store(true)
	if err := a.ask(r); err != nil {
		v.leaving.Store(false)
		return
	}
	if used {
		a.blame("deleted in use: DeleteVolume %s succeeded while it is staged and published here", v)
		a.leave(Step{Op: Leave}, v, true)
	}
	a.own.Lock()
	defer a.own.Unlock()
	for i := range a.volumes {
		if a.volumes[i] == v {
			a.volumes[i] = nil
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.ledger.volumes, v.id)
}

// forget deletes a snapshot, or the group that it belongs to.
func (a *actor) forget(s Step, shot *snapshot, company bool) {
	if shot.group != nil {
		a.disband(s, shot, company)
		return
	}
	r := request2(s, "DeleteSnapshot "+shot.name, company)
	r.frees = true
	r.send = func(ctx context.Context) (string, error) {
		_, err := a.controls().DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: shot.id})
		return "", err
	}
	shot.leaving.Store(true)
	if err := a.ask(r); err != nil {
		shot.leaving.Store(false)
		return
	}
	a.own.Lock()
	defer a.own.Unlock()
	for i := range a.snapshots {
		if a.snapshots[i] == shot {
			a.snapshots[i] = nil
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.ledger.snapshots, shot.id)
}

// expand grows a volume by 4 MiB, as csi-resizer and the kubelet do.
func (a *actor) expand(s Step, v *volume, company bool) {
	bytes, node := v.bytes+(4<<20)*max(a.setup.Scale, 1), false
	r := request2(s, "ControllerExpandVolume "+v.name, company, codes.ResourceExhausted, codes.OutOfRange, codes.FailedPrecondition)
	if company {
		r.refusals = append(r.refusals, codes.NotFound)
	}
	r.send = func(ctx context.Context) (string, error) {
		response, err := a.controls().ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
			VolumeId: v.id, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}, VolumeCapability: v.capability(),
		})
		a.own.Lock()
		defer a.own.Unlock()
		node = response.GetNodeExpansionRequired()
		return fmt.Sprint(response.GetCapacityBytes()), err
	}
	if err := a.ask(r); err != nil {
		return
	}
	a.own.Lock()
	v.bytes = bytes
	a.own.Unlock()
	if !node || !v.used || a.setup.Alone {
		return
	}
	r = request2(s, "NodeExpandVolume "+v.name, company)
	r.send = func(ctx context.Context) (string, error) {
		_, err := a.uses().NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
			VolumeId: v.id, VolumePath: a.target(v), StagingTargetPath: a.staging(v), CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}, VolumeCapability: v.capability(),
		})
		return "", err
	}
	if err := a.ask(r); err == nil {
		a.sized(v)
	}
}

// modify changes a volume's parameters.
func (a *actor) modify(s Step, v *volume, company bool) {
	parameters := a.setup.Classes[v.class].Modified
	if parameters == nil {
		return
	}
	r := request2(s, "ControllerModifyVolume "+v.name, company)
	if company {
		r.refusals = append(r.refusals, codes.NotFound)
	}
	r.send = func(ctx context.Context) (string, error) {
		_, err := a.controls().ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{VolumeId: v.id, MutableParameters: parameters})
		return "", err
	}
	_ = a.ask(r) // it may be refused
}

// damage cuts the data of a volume short, as a broken disk or an administrator does.
func (a *actor) damage(v *volume) {
	if !a.setup.Classes[v.class].Sized || v.contents == nil {
		return
	}
	if path := a.data(v); path != "" && os.Truncate(path, v.bytes/2) == nil {
		a.own.Lock()
		defer a.own.Unlock()
		v.damaged = true
	}
}
