package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// The reasons that Health gives.
const (
	reasonNotMounted = "NotMounted"
	reasonCorrupted  = "MountCorrupted"
	reasonReadOnly   = "FilesystemReadOnly"
	reasonUnfinished = "StagingUnfinished"
	reasonOther      = "OtherMount"
	reasonDeviceGone = "DeviceGone"
	reasonUnstaged   = "StagingFailed"
	reasonHidden     = "PublishingFailed"
)

// Health returns what is wrong with a volume as it is staged and published on this node; nothing if all is well. It
// examines all recorded paths. It also reports each given path, if not empty, at which the volume is not. A failure to
// stage or publish is reported with its cause until an attempt succeeds or is undone. Kinds: NotFound when nothing is
// known of the volume here.
func (s *Service) Health(ctx context.Context, volume, publishPath, stagingPath string) ([]backends.HealthIssue, error) {
	return look(ctx, s, "examine", volume, publishPath, func(ctx context.Context) ([]backends.HealthIssue, error) {
		return s.examine(ctx, volume, publishPath, stagingPath)
	})
}

func (s *Service) examine(ctx context.Context, volume, publishPath,
	stagingPath string) ([]backends.HealthIssue, error) {
	if err := s.known(ctx, volume); err != nil {
		return nil, err
	}
	record, failed := s.ledger.Get(volume), s.failures.of(volume)
	if record.Empty() && len(failed) == 0 {
		return nil, backends.Errorf(backends.NotFound, "it is neither staged nor published on this node")
	}
	var found findings
	for _, path := range slices.Sorted(maps.Keys(failed)) {
		if _, ok := placeIn(record, path); !ok {
			found.add(failed[path].Status, failed[path].Reason, failed[path].Message)
		}
	}
	if record.Staged != nil {
		found.examineStaging(ctx, *record.Staged)
	}
	for _, p := range record.Published {
		found.examine(ctx, p.Target, record.Staged, p.ReadOnly)
	}
	for _, path := range []string{stagingPath, publishPath} {
		_, told := failed[path]
		if _, ok := placeIn(record, path); path == "" || ok || told {
			continue
		}
		if again, err := boundAgain(ctx, record, path); err != nil {
			found.add(backends.Degraded, reasonOther, err.Error())
		} else if !again {
			found.add(backends.Inaccessible, reasonNotMounted, fmt.Sprintf("it is neither staged nor published at %s", path))
		}
	}
	return found.issues, nil
}

// findings collects issues. No two may have the same status and reason (CSI, VolumeHealthEntry).
type findings struct{ issues []backends.HealthIssue }

func (f *findings) add(status backends.HealthStatus, reason, message string) {
	for i, issue := range f.issues {
		if issue.Status == status && issue.Reason == reason {
			f.issues[i].Message = strings.Join([]string{issue.Message, message}, "; ")
			return
		}
	}
	f.issues = append(f.issues, backends.HealthIssue{Status: status, Reason: reason, Message: message})
}

func (f *findings) examineStaging(ctx context.Context, staged ledger.Staging) {
	if staged.Pending {
		f.add(backends.Degraded, reasonUnfinished, fmt.Sprintf("staging it at %s was begun and not finished", staged.Path))
		return
	}
	f.examine(ctx, placeOf(staged), &staged, staged.ReadOnly)
	// An ext4 still answers from memory after its disk was pulled. It keeps its device number while it is mounted.
	if from := staged.Source; from.DevicePath != "" && device.Gone(from.Major, from.Minor) {
		f.add(backends.Inaccessible, reasonDeviceGone,
			fmt.Sprintf("its device %s (%d:%d) was taken away while it was in use: stop what uses it, so that it is unstaged, "+
				"and attach it again",
				from.DevicePath, from.Major, from.Minor))
	}
}

// examine inspects one place at which the volume should show.
func (f *findings) examine(ctx context.Context, place string, staged *ledger.Staging, readOnly bool) {
	state, err := mount.Inspect(ctx, place)
	switch {
	case mount.Corrupted(err):
		f.add(backends.Inaccessible, reasonCorrupted, fmt.Sprintf("its mount at %s does not answer: %v", place, err))
	case err != nil:
		f.add(backends.Degraded, reasonOther, fmt.Sprintf("it cannot be told whether it is mounted at %s: %v", place, err))
	case !state.Mounted:
		f.add(backends.Inaccessible, reasonNotMounted, fmt.Sprintf("nothing is mounted at %s", place))
	case staged != nil && !staged.Pending && !shows(state, *staged):
		f.add(backends.Inaccessible, reasonOther, fmt.Sprintf("what is mounted at %s is not what was staged", place))
	case state.ReadOnly && !readOnly:
		f.add(backends.Degraded, reasonReadOnly,
			fmt.Sprintf("it can only be read at %s: after an error the kernel has made its filesystem read-only", place))
	}
}
