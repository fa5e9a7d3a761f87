package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

func (d *demo) start(ctx context.Context, s *step) error {
	took, err := d.driver.Start(ctx)
	if err != nil {
		return err
	}
	s.ok("answers on %s after %d ms", d.driver.Endpoint(), took.Milliseconds())
	return nil
}

func (d *demo) identify(ctx context.Context, s *step) error {
	info, err := d.client.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	if err != nil {
		return err
	}
	plugin, err := d.client.GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	if err != nil {
		return err
	}
	controller, err := d.client.ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return err
	}
	node, err := d.client.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return err
	}
	if info.GetName() != "local.csi.stowage.dev" {
		return fmt.Errorf("the driver's name is %q", info.GetName())
	}
	if !takesMountGroup(node) {
		return errors.New("the node does not offer VOLUME_MOUNT_GROUP")
	}
	s.ok("%s %s", info.GetName(), info.GetVendorVersion())
	s.ok("capabilities: %d of the plugin, %d of the controller, %d of the node with VOLUME_MOUNT_GROUP",
		len(plugin.GetCapabilities()), len(controller.GetCapabilities()), len(node.GetCapabilities()))
	return nil
}

func takesMountGroup(node *csi.NodeGetCapabilitiesResponse) bool {
	for _, c := range node.GetCapabilities() {
		if c.GetRpc().GetType() == csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP {
			return true
		}
	}
	return false
}

func (d *demo) create(ctx context.Context, s *step) (err error) {
	if d.volume, err = d.client.Provision(ctx, claim("demo", "ext4")); err != nil {
		return err
	}
	ids, err := d.client.VolumeIDs(ctx)
	if err != nil {
		return err
	}
	if len(ids) != 1 || ids[0] != d.volume.ID || d.volume.Bytes != gib {
		return fmt.Errorf("volume %s has %d bytes, and the list is %v", d.volume.ID, d.volume.Bytes, ids)
	}
	s.ok("volume %s of 1 GiB from the class {pool: image, csi.storage.k8s.io/fstype: ext4}, and no other", d.volume.ID)
	return nil
}

func (d *demo) mount(ctx context.Context, s *step) error {
	if err := d.client.Stage(ctx, d.volume); err != nil {
		return err
	}
	if err := d.client.Publish(ctx, d.volume); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(d.volume.Target(), &fs); err != nil {
		return err
	}
	if fs.Type != unix.EXT4_SUPER_MAGIC || fs.Flags&unix.ST_RDONLY != 0 {
		return fmt.Errorf("the filesystem at %s has type %#x and flags %#x", d.volume.Target(), fs.Type, fs.Flags)
	}
	s.ok("ext4, read-write")
	return d.checkRoot(s)
}

// checkRoot checks that a volume's root is as the kubelet sets it for a pod with an fsGroup.
func (d *demo) checkRoot(s *step) error {
	info, err := os.Stat(d.volume.Target())
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Gid != group || info.Mode()&os.ModeSetgid == 0 || info.Mode()&0o070 != 0o070 {
		return fmt.Errorf("the root is %s of group %d, want drwxrwsr-x of group %d", info.Mode(), stat.Gid, group)
	}
	s.ok("the root is %s of group %d: setgid, group may read and write", info.Mode(), stat.Gid)
	return nil
}

func (d *demo) write(ctx context.Context, s *step) (err error) {
	path := filepath.Join(d.volume.Target(), fileBefore)
	if _, err := workload(ctx, s, path, 1, group+1); !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("a process of another group must not write: %w", orNil(err))
	}
	s.ok("another group is refused")
	if d.before, err = workload(ctx, s, path, 64, group); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != nobody || stat.Gid != group {
		return fmt.Errorf("the file belongs to %d:%d, want %d:%d", stat.Uid, stat.Gid, nobody, group)
	}
	s.ok("user %d with group %d wrote and synced it, its file is of group %d", nobody, group, stat.Gid)
	s.ok("sha256 %s…", d.before[:12])
	return sameData(path, d.before)
}

func orNil(err error) error {
	if err == nil {
		return errors.New("it wrote")
	}
	return err
}

func (d *demo) stats(ctx context.Context, s *step) error {
	response, err := d.client.NodeGetVolumeStats(ctx,
		&csi.NodeGetVolumeStatsRequest{VolumeId: d.volume.ID, VolumePath: d.volume.Target()})
	if err != nil {
		return err
	}
	for _, usage := range response.GetUsage() {
		switch usage.GetUnit() {
		case csi.VolumeUsage_BYTES:
			if usage.GetUsed() < 64*mib || usage.GetTotal() < gib*9/10 || usage.GetTotal() > gib {
				return fmt.Errorf("used %d of %d bytes, with 64 MiB written to 1 GiB", usage.GetUsed(), usage.GetTotal())
			}
			s.ok("%d MiB used of %d MiB", usage.GetUsed()/mib, usage.GetTotal()/mib)
		case csi.VolumeUsage_INODES:
			s.ok("%d inodes used of %d", usage.GetUsed(), usage.GetTotal())
		default:
			return fmt.Errorf("usage in the unit %s", usage.GetUnit())
		}
	}
	if len(s.checked) != 2 {
		return fmt.Errorf("%d usages, want bytes and inodes", len(s.checked))
	}
	return nil
}
