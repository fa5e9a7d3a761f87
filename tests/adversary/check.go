package adversary

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// check queries a volume as csi-attacher, health monitors and the kubelet do. An existing volume is never reported as
// gone.
func (a *actor) check(s Step, v *volume, company bool) {
	for name, send := range map[string]func(ctx context.Context) error{
		"ControllerGetVolume": func(ctx context.Context) error {
			response, err := a.controls().ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: v.id})
			if id := response.GetVolume().GetVolumeId(); err == nil && id != v.id {
				return fmt.Errorf("it is called %q", id)
			}
			return err
		},
		"ControllerGetVolumeHealth": func(ctx context.Context) error {
			_, err := a.controls().ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: v.id})
			return err
		},
		"ValidateVolumeCapabilities": func(ctx context.Context) error {
			response, err := a.controls().ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{
				VolumeId: v.id, VolumeCapabilities: []*csi.VolumeCapability{v.capability()},
			})
			if err == nil && response.GetConfirmed() == nil {
				return fmt.Errorf("it cannot be used as it was made for: %s", response.GetMessage())
			}
			return err
		},
	} {
		a.asked(s, name, v, company, send)
	}
	if v.used && !a.setup.Alone {
		a.checkUse(s, v, company)
	}
}

// checkUse queries the node.
func (a *actor) checkUse(s Step, v *volume, company bool) {
	a.asked(s, "NodeGetVolumeStats", v, company, func(ctx context.Context) error {
		response, err := a.uses().NodeGetVolumeStats(ctx,
			&csi.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: a.target(v), StagingTargetPath: a.staging(v)})
		if err == nil && len(response.GetUsage()) == 0 {
			return fmt.Errorf("it has no size")
		}
		return err
	})
	a.asked(s, "NodeGetVolumeHealth", v, company, func(ctx context.Context) error {
		_, err := a.uses().NodeGetVolumeHealth(ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: v.id,
			VolumePublishPath: a.target(v), StagingTargetPath: a.staging(v)})
		return err
	})
}

// asked makes a query, unless the driver lacks that call.
func (a *actor) asked(s Step, name string, v *volume, company bool, send func(ctx context.Context) error) {
	r := a.requestFor(s, v, name, company || v.damaged, codes.Unimplemented)
	if v.leaving.Load() {
		r.refusals = append(r.refusals, codes.NotFound)
	}
	r.send = func(ctx context.Context) (string, error) { return "", send(ctx) }
	_ = a.ask(r) // It may be refused.
}
