package device

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// Refresh makes the kernel read the size of a device again and returns it in bytes. A loop device takes the current
// size of its image. Kinds: Invalid when the path is not plain, or is no block device; NotFound; Denied when this
// process may not open the device; InUse when the kernel refuses a further user of it; Unavailable when the device does
// not answer, or not before the context ends.
func Refresh(ctx context.Context, devicePath string) (sizeBytes int64, err error) {
	call := deadline.Call{Name: fmt.Sprintf("asking %q for its size", devicePath)}
	return deadline.Do(ctx, call, func(context.Context) (int64, error) { return refresh(devicePath) }, nil)
}

func refresh(devicePath string) (sizeBytes int64, err error) {
	plain, err := safepath.Absolute(devicePath)
	if err != nil {
		return 0, err
	}
	found, err := locate(plain, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = found.Close() }() // O_PATH
	if found.kind() != unix.S_IFBLK {
		return 0, backends.Errorf(backends.Invalid, "%q is not a block device", plain)
	}
	node, err := found.reopen(true)
	if err != nil {
		return 0, backends.Errorf(openKind(err), "opening %q: %w", plain, err)
	}
	defer func() { _ = node.Close() }() // open for reading only
	if unix.Major(found.stat.Rdev) == loopMajor {
		if err := setCapacity(node); err != nil {
			return 0, err
		}
	}
	return blockSize(node)
}
