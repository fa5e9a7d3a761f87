package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"

	"github.com/stowage-csi/stowage/tests/cloud/moto"
)

// The phases of a volume's life.
const (
	create = "create"
	attach = "attach"
	detach = "detach"
	remove = "delete"
)

func phases() []string { return []string{create, attach, detach, remove} }

// bench is a run.
type bench struct {
	options
	proxy  *proxy
	driver *driver
	nodes  []string
	floor  *floor

	alone, many map[string]*result // by phase
}

// result is the result of a phase for some volumes.
type result struct {
	series
	volumes int
	took    time.Duration
	calls   map[string]int
}

// volume is a volume in use.
type volume struct{ name, handle, node string }

func (b *bench) measure(ctx context.Context) (err error) {
	if err := b.floor.measure(ctx, 10); err != nil {
		return err
	}
	if _, err = b.use(ctx, "warming", b.warming, 1); err != nil {
		return err
	}
	if b.alone, err = b.use(ctx, "alone", b.options.alone, 1); err != nil {
		return err
	}
	if err := b.floor.measure(ctx, 10); err != nil {
		return err
	}
	if b.many, err = b.use(ctx, "many", b.volumes, b.inFlight); err != nil {
		return err
	}
	if err := b.floor.measure(ctx, 10); err != nil {
		return err
	}
	return b.floor.measureMany(ctx, b.volumes, b.inFlight)
}

// use takes n volumes through their life, phase by phase, with up to inFlight at a time.
func (b *bench) use(ctx context.Context, name string, n, inFlight int) (map[string]*result, error) {
	volumes := make([]*volume, n)
	for i := range volumes {
		volumes[i] = &volume{name: fmt.Sprintf("pvc-%s-%d", name, i), node: b.nodes[i%len(b.nodes)]}
	}
	results := map[string]*result{}
	for _, phase := range phases() {
		r, err := b.each(ctx, phase, volumes, inFlight)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", phase, err)
		}
		results[phase] = r
	}
	return results, nil
}

// each makes the phase's call for each volume.
func (b *bench) each(ctx context.Context, phase string, volumes []*volume, inFlight int) (*result, error) {
	r := &result{volumes: len(volumes)}
	before, began := len(b.proxy.Log()), time.Now()
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for _, v := range volumes {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			began := time.Now()
			err := b.call(ctx, phase, v)
			mu.Lock()
			defer mu.Unlock()
			r.add(time.Since(began))
			return err
		})
	}
	err := group.Wait()
	r.took, r.calls = time.Since(began), b.proxy.since(before)
	return r, err
}

func (b *bench) call(ctx context.Context, phase string, v *volume) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	can := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
	switch phase {
	case create:
		var made *csi.CreateVolumeResponse
		made, err = b.driver.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: v.name, CapacityRange: &csi.CapacityRange{RequiredBytes: 4 << 30},
			VolumeCapabilities: []*csi.VolumeCapability{can},
			Parameters:         map[string]string{"type": "gp3"},
			AccessibilityRequirements: &csi.TopologyRequirement{Preferred: []*csi.Topology{
				{Segments: map[string]string{"topology.kubernetes.io/zone": moto.Zone}}},
				Requisite: []*csi.Topology{{Segments: map[string]string{"topology.kubernetes.io/zone": moto.Zone}}}},
		})
		v.handle = made.GetVolume().GetVolumeId()
	case attach:
		_, err = b.driver.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: v.handle, NodeId: v.node,
			VolumeCapability: can})
	case detach:
		_, err = b.driver.ControllerUnpublishVolume(ctx,
			&csi.ControllerUnpublishVolumeRequest{VolumeId: v.handle, NodeId: v.node})
	case remove:
		_, err = b.driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.handle})
	}
	return err
}
