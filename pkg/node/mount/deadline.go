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

// unattachedBy is unattached with a deadline at the end of the context. A mount that is too late was never attached,
// and goes with its descriptor.
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

// proveRoot calls fs.Prove with the root of the mount. Kinds: those of Prove.
func proveRoot(ctx context.Context, mount int, fs Filesystem) error {
	if fs.Prove == nil {
		return nil
	}
	// It uses the mount's own descriptor, because opening the root again may be denied: a pod may deny access to all.
	fd, err := unix.FcntlInt(uintptr(mount), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return backends.Errorf(kindOf(err), "looking at what was mounted from %q: %w", fs.Source, err)
	}
	root := os.NewFile(uintptr(fd), fs.Source)
	defer func() { _ = root.Close() }() // opened for looking only
	return fs.Prove(ctx, root)
}
