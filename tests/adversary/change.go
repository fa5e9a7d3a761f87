package adversary

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// delete deletes a volume. While the volume is used, that must be refused.
func (a *actor) delete(s Step, v *volume, company bool) {
	if v.used && !a.knowsUse() {
		return // Only the orchestrator knows.
	}
	r := a.requestFor(s, v, "DeleteVolume", company)
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
	if used && a.knowsUse() {
		a.blame("deleted in use: DeleteVolume %s succeeded while it is used here", v)
		a.leave(Step{Op: Leave}, v, true)
	}
	a.outlived(v)
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

// knowsUse reports whether the driver knows that a volume is used, and must not delete it: its node is in the same
// process, or a cloud knows the attachment. After a fault, a late request may have detached the volume.
func (a *actor) knowsUse() bool { return !a.setup.Apart || a.setup.Cloud && !a.disturbed.Load() }

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
	r := a.requestFor(s, v, "ControllerExpandVolume", company, codes.ResourceExhausted, codes.OutOfRange,
		codes.FailedPrecondition)
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
			VolumeId: v.id, VolumePath: a.target(v), StagingTargetPath: a.staging(v),
			CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}, VolumeCapability: v.capability(),
		})
		return "", err
	}
	if err := a.ask(r); err == nil {
		a.sized(v)
	}
}

// modify changes a volume's parameters.
func (a *actor) modify(s Step, v *volume, company bool) {
	class := a.setup.Classes[v.class]
	parameters, retained := class.Modified, class.Retains
	if parameters == nil {
		return
	}
	if class.Undone != nil && s.Count%2 == 0 {
		parameters, retained = class.Undone, false
	}
	r := a.requestFor(s, v, "ControllerModifyVolume", company)
	if company {
		r.refusals = append(r.refusals, codes.NotFound)
	}
	r.send = func(ctx context.Context) (string, error) {
		_, err := a.controls().ControllerModifyVolume(ctx,
			&csi.ControllerModifyVolumeRequest{VolumeId: v.id, MutableParameters: parameters})
		return "", err
	}
	err := a.ask(r) // it may be refused
	a.own.Lock()
	defer a.own.Unlock()
	v.retained, v.unsure = retained, err != nil
}

// outlived notes that the directory of a deleted volume must still exist, by the last acknowledged parameters.
func (a *actor) outlived(v *volume) {
	class := a.setup.Classes[v.class]
	if !class.Retains || !v.retained && !v.unsure {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept[filepath.Join(a.disks[class.Disk].dir, v.name)] = !v.unsure
}

// retains checks that retained directories exist, and removes them, with their records, which appear a little later.
func (w *world) retains([]*actor) {
	for dir, must := range w.kept {
		_, err := os.Lstat(dir)
		if err != nil && must {
			w.blame("what was acknowledged last holds: what was to be retained is gone: %v", err)
		}
		if err != nil {
			delete(w.kept, dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			w.blame("what was retained cannot be taken away: %v", err)
		}
	}
	for began := time.Now(); len(w.kept) > 0 && time.Since(began) < w.limits.lists; <-time.After(20 * time.Millisecond) {
		for dir := range w.kept {
			w.unrecord(dir)
		}
	}
	clear(w.kept)
}

// unrecord removes the record of a retained directory, if it exists.
func (w *world) unrecord(dir string) {
	records, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".stowage/retained/*"))
	for _, record := range records {
		text, err := os.ReadFile(record)
		if err == nil && strings.Contains(string(text), fmt.Sprintf(`"subDir": %q`, filepath.Base(dir))) {
			delete(w.kept, dir)
			if err := os.Remove(record); err != nil {
				w.blame("%v", err)
			}
		}
	}
}

// damage truncates the data of a volume, as a broken disk or an administrator does.
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
