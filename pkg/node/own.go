package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/ownership"
)

// ownershipLogInterval is how often the progress of a walk is logged.
const ownershipLogInterval = 10 * time.Second

// OwnershipObserver observes the walks that give files to a group. It is called from several goroutines.
type OwnershipObserver interface {
	WalkBegan()
	// WalkProgressed gets the number of entries that were visited since its last call for the same walk, how many of them
	// were changed, and how many could not be changed.
	WalkProgressed(entries, changed, denied int64)
	// WalkEnded gets an error if the walk was cut short.
	WalkEnded(took time.Duration, err error)
}

// own gives the files to the group.
func (st *staging) own(ctx context.Context) error {
	if st.want.Group == "" {
		return nil
	}
	return st.service.giveFiles(ctx, st.request.Volume, st.want.Group, ownership.Request{
		Path: st.request.StagingPath, Policy: ownership.Policy(st.request.Settings.FSGroupChangePolicy),
		Exclusive: st.exclusive(),
	})
}

// giveFiles gives the files of a volume to a group, and continues in the background if that takes longer than the call.
func (s *Service) giveFiles(ctx context.Context, volume, group string, request ownership.Request) error {
	gid, err := ownership.ParseGID(group)
	if err != nil {
		return err
	}
	log := s.log.With("volume", volume, "group", gid)
	report := &walkReport{log: log, observer: s.ownership}
	request.GID, request.Observer = gid, report
	_, err = s.works.Do(ctx, background.Work{
		Key: volume, Name: fmt.Sprintf("giving the files at %s to group %d", request.Path, gid), Progress: report.progress,
	}, func(ctx context.Context) (filesystem.Found, error) {
		return filesystem.Found{}, walk(ctx, log, request)
	})
	return err
}

// walk gives the files to the group and logs the result.
func walk(ctx context.Context, log *slog.Logger, request ownership.Request) error {
	result, err := ownership.Apply(ctx, request)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if result.Denied > 0 { // As with the kubelet, the pod starts all the same, and may be unable to write.
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "gave the files to the group",
		"skipped", result.Skipped, "entries", result.Entries, "changed", result.Changed, "denied", result.Denied)
	return nil
}

// exclusive reports whether the files can be reached only through this staging. A directory or an export may have other
// users; a device's filesystem has none before the volume is published.
func (st *staging) exclusive() bool {
	return st.want.Source.Kind == ledger.Device && len(st.record.Published) == 0
}

// walkReport reports one walk to the log and to the Service's observer.
type walkReport struct {
	log      *slog.Logger
	observer OwnershipObserver // nil for none
	told     ownership.Result  // last told to the observer
	logged   time.Duration     // time into the walk at the last log line
	entries  atomic.Int64      // visited so far
}

// progress returns how far the walk has come.
func (r *walkReport) progress() string { return fmt.Sprintf("%d looked at", r.entries.Load()) }

// Began implements ownership.Observer.
func (r *walkReport) Began() {
	if r.observer != nil {
		r.observer.WalkBegan()
	}
}

// Progressed implements ownership.Observer.
func (r *walkReport) Progressed(soFar ownership.Result, elapsed time.Duration) {
	if r.observer != nil {
		r.observer.WalkProgressed(soFar.Entries-r.told.Entries, soFar.Changed-r.told.Changed, soFar.Denied-r.told.Denied)
	}
	r.told = soFar
	r.entries.Store(soFar.Entries)
	if elapsed-r.logged < ownershipLogInterval {
		return
	}
	r.logged = elapsed
	r.log.Info("giving the files to the group", "entries", soFar.Entries, "changed", soFar.Changed, "denied", soFar.Denied,
		"rate", int64(float64(soFar.Entries)/elapsed.Seconds()), "elapsed", elapsed.Round(time.Second))
}

// Ended implements ownership.Observer.
func (r *walkReport) Ended(elapsed time.Duration, err error) {
	if r.observer != nil {
		r.observer.WalkEnded(elapsed, err)
	}
}
