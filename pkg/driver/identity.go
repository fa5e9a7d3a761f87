package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/manifest"
)

// identity serves csi.v1.Identity.
type identity struct {
	csi.UnimplementedIdentityServer
	config Config
}

// Plugin is what all processes of a driver can do together.
type Plugin struct {
	controller bool
	features   backends.Features
}

// NewPlugin looks at a backend before a process leaves out the side that it does not serve.
func NewPlugin(whole *backends.Instance) *Plugin {
	return &Plugin{controller: whole.Controller != nil, features: backends.Resolve(whole.Controller, whole.Node)}
}

func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.config.Name, VendorVersion: i.config.Version,
		Manifest: manifest.Encode(i.config.Definition.ListsOwn)}, nil
}

func (i *identity) GetPluginCapabilities(context.Context,
	*csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: pluginCapabilities(i.config.Plugin)}, nil
}

// Probe answers that the process is ready once it serves: every call gets an answer then. It says nothing of the
// storage. Who probes for the kubelet, such as the livenessprobe sidecar or Probe, takes an answer of false for a
// failure, as it takes an error, and has the process restarted, which brings no storage back and cuts off the calls for
// what still works. storageWatch tells of storage that is gone, and so do NodeGetStorageHealth and each call for it.
func (i *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
