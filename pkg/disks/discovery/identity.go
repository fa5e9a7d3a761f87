package discovery

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// NameAt returns the name of the volume that a block device is, or would be. It fails if the device does not answer in
// time.
func NameAt(ctx context.Context, major, minor uint32) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	call := deadline.Call{Name: fmt.Sprintf("identifying device %d:%d", major, minor)}
	return deadline.Do(ctx, call, func(context.Context) (string, error) {
		identity, err := IdentityOf(major, minor)
		if err != nil {
			return "", err
		}
		return NameOf(identity), nil
	}, nil)
}

// IdentityOf returns an identity that distinguishes a block device from all others, and survives a reboot.
func IdentityOf(major, minor uint32) (string, error) {
	b, err := blockAt(unix.Mkdev(major, minor))
	if err != nil {
		return "", fmt.Errorf("look at device %d:%d: %w", major, minor, err)
	}
	if b.disk != nil {
		identity, err := IdentityOf(b.disk.major, b.disk.minor)
		return report.PartIdentity(identity, fmt.Sprintf("%d@%s", b.partition, b.start)), err
	}
	if b.transport == "loop" {
		return loopIdentity(b.node())
	}
	ids, err := device.Identifiers(major, minor)
	if err != nil {
		return "", err
	}
	return best(ids, b)
}

// best returns the identifier that is most likely unique to the disk. A manufacturer's serial number is unique only
// among its own disks, so the model is added to it.
func best(ids []string, b *block) (string, error) {
	for _, attribute := range []string{"wwid=", "device/wwid=", "nguid=", "eui=", "uuid=", "dm/uuid="} {
		for _, id := range ids {
			if strings.HasPrefix(id, attribute) {
				return id, nil
			}
		}
	}
	if len(ids) == 0 {
		return "", anonymousError{b.node()}
	}
	return ids[0] + ",model=" + b.model, nil
}

// anonymousError says that a device, by its node, reports no identity.
type anonymousError struct{ node string }

// Error returns a sentence.
func (e anonymousError) Error() string {
	return e.node + " reports no serial number or other identity, so that it cannot be told from another disk: use a " +
		"filesystem on it as a mount point"
}

// loopIdentity returns the identity of the file that a loop device holds. A loop device that holds a disk is not a disk
// itself: the kubelet keeps one on each raw block volume that a pod uses.
func loopIdentity(node string) (string, error) {
	info, err := loopInfo(node)
	if err != nil {
		return "", err
	}
	if info.Rdevice != 0 {
		return "", fmt.Errorf("%s holds a block device and no file: let a rule select that device", node)
	}
	return fmt.Sprintf("file=%d:%d", info.Device, info.Inode), nil
}

// loopInfo asks a loop device what it holds.
func loopInfo(node string) (*unix.LoopInfo64, error) {
	f, err := os.OpenFile(node, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // open for reading only
	info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("ask %s what it holds: %w", node, err)
	}
	return info, nil
}
