package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// identity serves csi.v1.Identity.
type identity struct {
	csi.UnimplementedIdentityServer
	config   Config
	features backends.Features
}

func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.config.Name, VendorVersion: i.config.Version}, nil
}

func (i *identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	list := pluginCapabilities(i.features, i.config.Instance.Controller != nil)
	return &csi.GetPluginCapabilitiesResponse{Capabilities: list}, nil
}

// Probe answers once the process serves: everything that could fail has been opened before.
func (i *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
