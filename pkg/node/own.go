package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/ownership"
)

// ownershipLogInterval is how often the log says how far a walk has come.
const ownershipLogInterval = 10 * time.Second

// OwnershipObserver is told of the walks that give files to a group, from several goroutines.
type OwnershipObserver interface {
	WalkBegan()
	// WalkProgressed gets the entries that were looked at since it was last called for the same walk, and
	// those among them that were changed, or could not be.
	WalkProgressed(entries, changed, denied int64)
	// WalkEnded gets an error when the walk was cut short.
	WalkEnded(took time.Duration, err error)
}

// own gives the files to the group.
func (st *staging) own(ctx context.Context) error {
	if st.want.Group == "" {
		return nil
	}
	gid, err := ownership.ParseGID(st.want.Group)
	if err != nil {
		return err
	}
	log := st.service.log.With("volume", st.request.Volume, "group", gid)
	result, err := ownership.Apply(ctx, ownership.Request{
		Path: st.request.StagingPath, GID: gid, Policy: ownership.Policy(st.request.Settings.FSGroupChangePolicy),
		Exclusive: st.exclusive(), Observer: &walkReport{ctx: ctx, log: log, observer: st.service.ownership},
	})
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if result.Denied > 0 { // The pod starts all the same, as with the kubelet, and may not be able to write.
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "gave the files to the group",
		"skipped", result.Skipped, "entries", result.Entries, "changed", result.Changed, "denied", result.Denied)
	return nil
}

// exclusive tells whether the files can be reached through this staging only. A directory or an export is
// shared with who knows whom; a device's filesystem is not, before the volume is published.
func (st *staging) exclusive() bool {
	return st.want.Source.Kind == ledger.Device && len(st.record.Published) == 0
}

// walkReport reports one walk to the log and to the Service's observer.
type walkReport struct {
	ctx      context.Context // of the request, which the walk does not outlive
	log      *slog.Logger
	observer OwnershipObserver // nil for none
	told     ownership.Result  // to the observer
	logged   time.Duration     // into the walk, when the log was last written to
}

// Began is of ownership.Observer.
func (r *walkReport) Began() {
	if r.observer != nil {
		r.observer.WalkBegan()
	}
}

// Progressed is of ownership.Observer.
func (r *walkReport) Progressed(soFar ownership.Result, elapsed time.Duration) {
	if r.observer != nil {
		r.observer.WalkProgressed(soFar.Entries-r.told.Entries, soFar.Changed-r.told.Changed, soFar.Denied-r.told.Denied)
	}
	r.told = soFar
	if elapsed-r.logged < ownershipLogInterval {
		return
	}
	r.logged = elapsed
	r.log.InfoContext(r.ctx, "giving the files to the group", "entries", soFar.Entries, "changed", soFar.Changed, "denied", soFar.Denied,
		"rate", int64(float64(soFar.Entries)/elapsed.Seconds()), "elapsed", elapsed.Round(time.Second))
}

// Ended is of ownership.Observer.
func (r *walkReport) Ended(elapsed time.Duration, err error) {
	if r.observer != nil {
		r.observer.WalkEnded(elapsed, err)
	}
}
