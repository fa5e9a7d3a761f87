package mount

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// unattachedBy is unattached that is given up at the end of the context. A mount that comes too late was never
// attached to anything, and goes with its descriptor.
func unattachedBy(ctx context.Context, fs Filesystem, target *safepath.Target) (int, error) {
	call := deadline.Call{Name: fmt.Sprintf("mounting %q for %q", fs.Source, target.Path())}
	return deadline.Do(ctx, call, func(ctx context.Context) (int, error) {
		mount, err := unattached(fs)
		if err != nil {
			return -1, err
		}
		if err := proveRoot(ctx, mount, fs); err != nil {
			closeFd(mount)
			return -1, err
		}
		return mount, nil
	}, closeFd)
}

// proveRoot has the one who knows look at what was mounted. Kinds: those of Prove.
func proveRoot(ctx context.Context, mount int, fs Filesystem) error {
	if fs.Prove == nil {
		return nil
	}
	// The mount's own descriptor, since to open its root once more may be denied: a pod may keep everybody out.
	fd, err := unix.FcntlInt(uintptr(mount), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return backends.Errorf(kindOf(err), "looking at what was mounted from %q: %w", fs.Source, err)
	}
	root := os.NewFile(uintptr(fd), fs.Source)
	defer func() { _ = root.Close() }() // opened for looking only
	return fs.Prove(ctx, root)
}
