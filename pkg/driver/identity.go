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

// Plugin has the capabilities of all processes of a driver together.
type Plugin struct {
	controller bool
	features   backends.Features
}

// NewPlugin returns the plugin of a backend. It must be called before a process removes the side that it does not
// serve.
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

// Probe reports ready whenever the process serves, because every call gets an answer then. It does not depend on the
// storage. Callers that probe for the kubelet, such as the livenessprobe sidecar or Probe, treat an answer of false
// like an error: the kubelet restarts the process. That brings no storage back, and cuts off calls for storage that
// works. storageWatch reports missing storage, and so do NodeGetStorageHealth and each call for it.
func (i *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
