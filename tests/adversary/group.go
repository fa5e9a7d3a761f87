package adversary

import (
	"context"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// group is an acknowledged group of snapshots.
type group struct {
	name, id string
	members  []*snapshot
}

// group takes snapshots of two volumes at one instant, as csi-snapshotter does: it retries until all are ready.
func (a *actor) group(s Step, company bool) {
	a.own.Lock()
	volumes, none := []*volume{a.volumes[0], a.volumes[1]}, a.snapshots[0] == nil && a.snapshots[1] == nil
	a.own.Unlock()
	if !none || !a.groupable(volumes) {
		return
	}
	g, began := &group{name: a.name("g")}, time.Now()
	r := request2(s, "CreateVolumeGroupSnapshot "+g.name, company, codes.OutOfRange)
	if company {
		r.refusals = append(r.refusals, codes.NotFound)
	}
	if !company || !a.setup.Settles {
		r.refusals = append(r.refusals, codes.FailedPrecondition)
	}
	var made *csi.VolumeGroupSnapshot
	r.send = func(ctx context.Context) (string, error) {
		request := &csi.CreateVolumeGroupSnapshotRequest{Name: g.name,
			SourceVolumeIds: []string{volumes[0].id, volumes[1].id}}
		response, err := a.groups().CreateVolumeGroupSnapshot(ctx, request)
		if err != nil {
			return "", err
		}
		if !response.GetGroupSnapshot().GetReadyToUse() {
			return "", status.Error(codes.Unavailable, "it is not ready: ask again")
		}
		a.own.Lock()
		defer a.own.Unlock()
		made = response.GetGroupSnapshot()
		return made.GetGroupSnapshotId() + " of " + strings.Join(idsOf(made), ", "), nil
	}
	if err := a.ask(r); err != nil {
		return
	}
	if len(made.GetSnapshots()) != len(volumes) {
		a.blame("success never names incomplete data: %s of %d volumes has %d snapshots", r.name, len(volumes),
			len(made.GetSnapshots()))
		return
	}
	g.id = made.GetGroupSnapshotId()
	for _, v := range volumes {
		a.member(g, v, v.copied(began), made)
	}
}

// groupable reports whether the volumes can be in one group.
func (a *actor) groupable(volumes []*volume) bool {
	for _, v := range volumes {
		if v == nil || v.damaged || v.class != volumes[0].class || !a.setup.Classes[v.class].Groups {
			return false
		}
	}
	return true
}

func idsOf(g *csi.VolumeGroupSnapshot) (ids []string) {
	for _, s := range g.GetSnapshots() {
		ids = append(ids, s.GetSnapshotId())
	}
	return ids
}

// member puts the snapshot of a group's volume into the slot of the volume.
func (a *actor) member(g *group, v *volume, origin *copied, made *csi.VolumeGroupSnapshot) {
	for _, s := range made.GetSnapshots() {
		if s.GetSourceVolumeId() != v.id {
			continue
		}
		if s.GetGroupSnapshotId() != g.id || !s.GetReadyToUse() {
			a.blame("success never names incomplete data: %s is answered with the snapshot %v", g.name, s)
			return
		}
		shot := &snapshot{
			name: g.name, class: v.class, raw: v.raw, source: v.id, id: s.GetSnapshotId(), bytes: s.GetSizeBytes(),
			origin: origin, group: g,
		}
		a.own.Lock()
		a.snapshots[len(g.members)] = shot
		a.own.Unlock()
		g.members = append(g.members, shot)
		a.mu.Lock()
		a.ledger.snapshots[shot.id] = shot
		a.mu.Unlock()
		return
	}
	a.blame("success never names incomplete data: %s has no snapshot of %s", g.name, v)
}

// disband deletes a group with its snapshots. The deletion of a single one must be refused.
func (a *actor) disband(s Step, shot *snapshot, company bool) {
	g := shot.group
	var ids []string
	for _, m := range g.members {
		m.leaving.Store(true)
		ids = append(ids, m.id)
	}
	alone := request{name: "DeleteSnapshot of a group " + shot.id, company: true,
		refusals: []codes.Code{codes.InvalidArgument}}
	alone.send = func(ctx context.Context) (string, error) {
		_, err := a.controls().DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: shot.id})
		return "", err
	}
	if err := a.ask(alone); err == nil {
		a.blame("deleted in use: the snapshot %s was deleted, which belongs to the group %s", shot.id, g.id)
		return
	}
	r := request2(s, "DeleteVolumeGroupSnapshot "+g.name, company)
	r.frees = true
	r.send = func(ctx context.Context) (string, error) {
		_, err := a.groups().DeleteVolumeGroupSnapshot(ctx,
			&csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: g.id, SnapshotIds: ids})
		return "", err
	}
	if err := a.ask(r); err != nil {
		return
	}
	a.own.Lock()
	defer a.own.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range g.members {
		delete(a.ledger.snapshots, m.id)
		for i := range a.snapshots {
			if a.snapshots[i] == m {
				a.snapshots[i] = nil
			}
		}
	}
}
