package failover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// disks are the disks of the cloud's volumes: loop devices over files that outlive the machines.
type disks struct {
	t      *testing.T
	folder string // deployed/kustomization.yaml mounts each node's own part of it
}

// instances maps nodes to their machines.
func instances() map[string]string {
	return map[string]string{"node-1": region.NodeA, "node-2": region.NodeB}
}

func nodeOf(instance string) string {
	for node, id := range instances() {
		if id == instance {
			return node
		}
	}
	return ""
}

// prepare creates the folders before a pod mounts them.
func (d disks) prepare() error {
	var errs []error
	for node := range instances() {
		errs = append(errs, os.MkdirAll(filepath.Join(d.folder, node, "block"), 0o755),
			os.MkdirAll(filepath.Join(d.folder, node, "dev"), 0o755))
	}
	return errors.Join(append(errs, os.MkdirAll(filepath.Join(d.folder, "images"), 0o700))...)
}

// plugged is called by the cloud after a volume is attached.
func (d disks) plugged(instance, volume string, gib int) {
	if err := d.plug(nodeOf(instance), volume, int64(gib)<<30); err != nil {
		d.t.Errorf("plug %s into %s: %v", volume, instance, err)
	}
}

func (d disks) plug(node, volume string, bytes int64) error {
	image := filepath.Join(d.folder, "images", volume)
	file, err := os.OpenFile(image, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(bytes), file.Close()); err != nil {
		return err
	}
	out, err := exec.CommandContext(d.t.Context(), "losetup", "--find", "--show", image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("losetup: %w: %s", err, out)
	}
	var stat unix.Stat_t
	if err := unix.Stat(strings.TrimSpace(string(out)), &stat); err != nil {
		return err
	}
	name := fmt.Sprintf("nvme7%dn1", unix.Minor(stat.Rdev))
	// The loop device belongs to this test alone: a device node of that name is left from a run that was killed.
	if err := os.Remove("/dev/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := unix.Mknod("/dev/"+name, unix.S_IFBLK|0o600, int(stat.Rdev)); err != nil {
		return err
	}
	number := fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	serial := fmt.Sprintf("%-20s\n", region.Serial(volume))
	// The disk appears in /sys/block last.
	return errors.Join(
		write(filepath.Join(d.folder, node, "dev", number, "uevent"), "DEVNAME="+name+"\nDEVTYPE=disk\n"),
		write(filepath.Join(d.folder, node, "dev", number, "device", "serial"), serial),
		write(filepath.Join(d.folder, node, "dev", number, "size"), fmt.Sprintln(bytes/512)),
		write(filepath.Join(d.folder, node, "block", name, "device", "serial"), serial),
	)
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// unplugged is called by the cloud when a volume is to be detached.
func (d disks) unplugged(instance, volume string) {
	if err := d.pull(nodeOf(instance), volume); err != nil {
		d.t.Errorf("pull %s out of %s: %v", volume, instance, err)
	}
}

func (d disks) pull(node, volume string) error {
	shown, err := filepath.Glob(filepath.Join(d.folder, node, "block", "*", "device", "serial"))
	for _, path := range shown {
		serial, failed := os.ReadFile(path)
		if err = errors.Join(err, failed); strings.TrimSpace(string(serial)) == region.Serial(volume) {
			err = errors.Join(err, d.remove(node, filepath.Base(filepath.Dir(filepath.Dir(path)))))
		}
	}
	return err
}

func (d disks) remove(node, name string) error {
	var stat unix.Stat_t
	if err := unix.Stat("/dev/"+name, &stat); err != nil {
		return err
	}
	loop := fmt.Sprintf("/dev/loop%d", unix.Minor(stat.Rdev))
	number := fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	err := errors.Join(
		os.RemoveAll(filepath.Join(d.folder, node, "block", name)),
		os.RemoveAll(filepath.Join(d.folder, node, "dev", number)), os.Remove("/dev/"+name),
	)
	detach := exec.CommandContext(context.WithoutCancel(d.t.Context()), "losetup", "--detach", loop)
	if out, failed := detach.CombinedOutput(); failed != nil {
		err = errors.Join(err, fmt.Errorf("losetup: %w: %s", failed, out))
	}
	return err
}

// removeAll removes the disks when the test ends, and those of an earlier run.
func (d disks) removeAll() error {
	var err error
	for node := range instances() {
		shown, failed := filepath.Glob(filepath.Join(d.folder, node, "block", "*"))
		err = errors.Join(err, failed)
		for _, path := range shown {
			err = errors.Join(err, d.remove(node, filepath.Base(path)))
		}
	}
	return err
}
