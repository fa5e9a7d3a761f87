package driver

import (
	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// pluginCapabilities returns the services that the plugin offers, and how its volumes grow: the sum over all its
// processes, and the same in each (CSI, GetPluginCapabilities).
func pluginCapabilities(plugin *Plugin) []*csi.PluginCapability {
	f, controller := plugin.features, plugin.controller
	var list []*csi.PluginCapability
	for _, c := range []struct {
		service csi.PluginCapability_Service_Type
		has     bool
	}{
		{csi.PluginCapability_Service_CONTROLLER_SERVICE, controller},
		{csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE, controller && f.Group != nil},
		{csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS, constrained(f)},
		{csi.PluginCapability_Service_SNAPSHOT_ACCESSIBILITY_CONSTRAINTS, constrained(f) && f.Snapshot != nil},
	} {
		if c.has {
			service := &csi.PluginCapability_Service{Type: c.service}
			list = append(list, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: service}})
		}
	}
	if f.Expand != nil {
		online := &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE}
		list = append(list, &csi.PluginCapability{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: online}})
	}
	return list
}

func constrained(f backends.Features) bool { return f.Topologist != nil || f.Locate != nil }

// controllerCapabilities returns the capabilities that follow from the backend's optional interfaces, and no others.
func controllerCapabilities(f backends.Features) []*csi.ControllerServiceCapability {
	var list []*csi.ControllerServiceCapability
	for _, c := range []struct {
		rpc csi.ControllerServiceCapability_RPC_Type
		has bool
	}{
		{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, true},
		{csi.ControllerServiceCapability_RPC_GET_VOLUME, true},
		{csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, true},
		{csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME, f.Attach != nil},
		{csi.ControllerServiceCapability_RPC_LIST_VOLUMES, f.List != nil},
		{csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES, f.List != nil && f.Attach != nil},
		{csi.ControllerServiceCapability_RPC_GET_CAPACITY, f.Capacity != nil},
		{csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, f.Snapshot != nil},
		{csi.ControllerServiceCapability_RPC_GET_SNAPSHOT, f.Snapshot != nil},
		{csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS, f.Snapshots != nil},
		{csi.ControllerServiceCapability_RPC_CLONE_VOLUME, f.Clone != nil},
		{csi.ControllerServiceCapability_RPC_EXPAND_VOLUME, f.Expand != nil},
		{csi.ControllerServiceCapability_RPC_MODIFY_VOLUME, f.Modify != nil},
		{csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH, f.Health != nil},
		{csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH, f.Health != nil},
	} {
		if c.has {
			rpc := &csi.ControllerServiceCapability_RPC{Type: c.rpc}
			list = append(list, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: rpc}})
		}
	}
	return list
}

// nodeCapabilities returns the capabilities of the node pipeline, which is the same for every backend.
func nodeCapabilities(f backends.Features, delegateFSGroup bool) []*csi.NodeServiceCapability {
	var list []*csi.NodeServiceCapability
	for _, c := range []struct {
		rpc csi.NodeServiceCapability_RPC_Type
		has bool
	}{
		{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, true},
		{csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, true},
		{csi.NodeServiceCapability_RPC_EXPAND_VOLUME, true},
		{csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, true},
		{csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH, true},
		{csi.NodeServiceCapability_RPC_GET_STORAGE_HEALTH, f.Inspect != nil},
		{csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP, delegateFSGroup},
	} {
		if c.has {
			rpc := &csi.NodeServiceCapability_RPC{Type: c.rpc}
			list = append(list, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: rpc}})
		}
	}
	return list
}

func groupCapabilities(features backends.Features) []*csi.GroupControllerServiceCapability {
	if features.Group == nil {
		return nil
	}
	rpc := &csi.GroupControllerServiceCapability_RPC{
		Type: csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
	}
	return []*csi.GroupControllerServiceCapability{{Type: &csi.GroupControllerServiceCapability_Rpc{Rpc: rpc}}}
}
