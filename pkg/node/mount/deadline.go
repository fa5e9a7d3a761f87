package mount

import (
	"context"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// unattachedBy is unattached that is given up at the end of the context. A mount that comes too late was never
// attached to anything, and goes with its descriptor.
func unattachedBy(ctx context.Context, fs Filesystem, target *safepath.Target) (int, error) {
	call := deadline.Call{Name: fmt.Sprintf("mounting %q for %q", fs.Source, target.Path())}
	return deadline.Do(ctx, call, func(context.Context) (int, error) { return unattached(fs) }, closeFd)
}
