package node

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// A recorded device that is published is not staged in another way: compareRecord refuses that while it is mounted at
// its place, and otherwise cannot free the device. Without a record, the mount at a target shows in which way the
// device was staged.

// checkAdoptable refuses to stage a device that is not at its place if that would change it under the pod that has it
// at a target. A raw device is neither formatted nor mounted, a mounted one is not handed out raw, and the write
// protection stays as it is. A directory or an export has no such state. Kinds: InUse, naming the target; those of
// device.FindLoops; Unavailable.
func (st *staging) checkAdoptable(ctx context.Context, target string, shown mount.State) error {
	if st.present || st.want.Source.Kind != ledger.Device || !shown.Mounted {
		return nil
	}
	if raw := shown.Rdev != 0; raw != (st.want.Type == backends.Block) {
		return backends.Errorf(backends.InUse,
			"it is still published at %s, as a raw device %t, and asked for with access type %s: unpublish it first", target,
			raw, st.want.Type)
	}
	devices, err := devicesOf(ctx, st.want.Source)
	if err != nil {
		return err
	}
	for path, number := range devices {
		protected, err := shownProtected(number)
		if err != nil {
			return err
		}
		if protected != st.want.ReadOnly {
			return backends.Errorf(backends.InUse,
				"it is still published at %s, from %s with write protection %t, and asked for with read-only %t: "+
					"unpublish it first", target, path, protected, st.want.ReadOnly)
		}
	}
	return nil
}

// shownProtected reports whether a device refuses writes, as sysfs shows it. The device is not opened. Kinds:
// Unavailable.
func shownProtected(number uint64) (bool, error) {
	text, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/ro", unix.Major(number), unix.Minor(number)))
	if err != nil {
		return false, backends.Errorf(backends.Unavailable, "cannot tell whether device %d:%d is write-protected: %w",
			unix.Major(number), unix.Minor(number), err)
	}
	return strings.TrimSpace(string(text)) == "1", nil
}
