package adversary

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// copySource describes a new volume and its source.
type copySource struct {
	class    int
	raw      bool
	fsType   string
	bytes    int64
	snapshot string
	volume   *volume
	origin   *copied
}

// create creates a volume, as csi-provisioner does.
func (a *actor) create(s Step, from copySource, company bool) {
	v := &volume{name: a.name("v"), class: from.class, raw: from.raw && a.setup.Classes[from.class].Raw,
		fsType: from.fsType, contents: newContents(nil)}
	request, err := a.claim(s, v, from)
	if err != nil {
		return
	}
	origin, began := from.origin, time.Now()
	r := request2(s, "CreateVolume "+v.name, company, codes.ResourceExhausted, codes.OutOfRange)
	r.makes = true
	if origin != nil || from.volume != nil {
		r.refusals = append(r.refusals, codes.NotFound)
		if !company || !a.setup.Settles {
			r.refusals = append(r.refusals, codes.FailedPrecondition)
		}
	}
	r.send = func(ctx context.Context) (string, error) {
		response, err := a.controls().CreateVolume(ctx, request)
		if err != nil {
			return "", err
		}
		made := response.GetVolume()
		a.own.Lock()
		defer a.own.Unlock()
		v.id, v.bytes, v.context = made.GetVolumeId(), made.GetCapacityBytes(), made.GetVolumeContext()
		return fmt.Sprintf("%s of %d bytes", v.id, v.bytes), nil
	}
	if err := a.ask(r); err != nil {
		return
	}
	if from.volume != nil {
		origin = from.volume.copied(began)
	}
	if origin != nil {
		v.origin, v.contents = origin, nil
	}
	a.acknowledged(v)
	a.own.Lock()
	defer a.own.Unlock()
	a.volumes[s.Slot%len(a.volumes)] = v
}

// claim returns the request for a volume.
func (a *actor) claim(s Step, v *volume, from copySource) (*csi.CreateVolumeRequest, error) {
	parameters := maps.Clone(a.setup.Classes[v.class].Parameters)
	request := &csi.CreateVolumeRequest{Name: v.name, VolumeCapabilities: []*csi.VolumeCapability{v.capability()},
		Parameters: parameters}
	bytes := max(from.bytes, s.MiB<<20*max(a.setup.Scale, 1))
	switch {
	case from.snapshot != "":
		source := &csi.VolumeContentSource_SnapshotSource{SnapshotId: from.snapshot}
		request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: source}}
	case from.volume != nil:
		source := &csi.VolumeContentSource_VolumeSource{VolumeId: from.volume.id}
		request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: source}}
	case bytes == 0:
		var err error
		if bytes, err = a.room(v); err != nil || bytes == 0 {
			return nil, errRefused
		}
	}
	if zone := a.setup.Zone; zone != "" {
		place := []*csi.Topology{{Segments: map[string]string{"topology.kubernetes.io/zone": zone}}}
		request.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: place, Preferred: place}
	}
	request.CapacityRange = &csi.CapacityRange{RequiredBytes: bytes}
	return request, nil
}

// copied returns the possible contents of a copy of the volume that was requested at a time and exists now.
func (v *volume) copied(began time.Time) *copied {
	if v.contents == nil {
		return v.origin
	}
	return &copied{source: v.contents.copy(), from: began, to: time.Now()}
}

// acknowledged checks that a new volume's handle differs from all others.
func (a *actor) acknowledged(v *volume) {
	a.mu.Lock()
	other, taken := a.ledger.volumes[v.id]
	a.ledger.volumes[v.id] = v
	a.mu.Unlock()
	if taken {
		a.blame("one volume for a name: %s was given the handle of %s", v, other)
	}
}

// requestFor returns a request for an existing volume.
func (a *actor) requestFor(s Step, v *volume, rpc string, company bool, refusals ...codes.Code) request {
	r := request2(s, rpc+" "+v.name, company, refusals...)
	r.disk = a.disks[a.setup.Classes[v.class].Disk]
	return r
}

// request2 returns a request as the step specifies.
func request2(s Step, name string, company bool, refusals ...codes.Code) request {
	return request{name: name, how: s.How, within: s.Within, company: company, refusals: refusals}
}

// snapshot takes a snapshot, as csi-snapshotter does: it retries until the snapshot is ready.
func (a *actor) snapshot(s Step, v *volume, company bool) {
	shot, began := &snapshot{name: a.name("s"), class: v.class, raw: v.raw, source: v.id}, time.Now()
	r := request2(s, "CreateSnapshot "+shot.name, company, codes.OutOfRange, codes.Unimplemented)
	r.makes = true
	if !company || !a.setup.Settles {
		r.refusals = append(r.refusals, codes.FailedPrecondition)
	}
	if company {
		r.refusals = append(r.refusals, codes.NotFound)
	}
	if v.damaged {
		r.refusals = append(r.refusals, codes.DataLoss, codes.Internal, codes.Unavailable, codes.NotFound, codes.Unknown)
	}
	r.send = func(ctx context.Context) (string, error) {
		response, err := a.controls().CreateSnapshot(ctx, &csi.CreateSnapshotRequest{SourceVolumeId: v.id, Name: shot.name})
		if err != nil {
			return "", err
		}
		a.own.Lock()
		defer a.own.Unlock()
		if !response.GetSnapshot().GetReadyToUse() {
			return "", status.Error(codes.Unavailable, "it is not ready: ask again")
		}
		shot.id, shot.bytes = response.GetSnapshot().GetSnapshotId(), response.GetSnapshot().GetSizeBytes()
		return shot.id, nil
	}
	if err := a.ask(r); err != nil {
		return
	}
	if v.damaged {
		a.blame("success never names incomplete data: %s of %s is ready, whose data was cut short", r.name, v)
	}
	a.shots.Add(1)
	shot.origin = v.copied(began)
	a.own.Lock()
	defer a.own.Unlock()
	a.snapshots[s.From%len(a.snapshots)] = shot
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ledger.snapshots[shot.id] = shot
}
