package node

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/node/trim"
	"github.com/stowage-csi/stowage/pkg/spare"
)

// Config configures a Service.
type Config struct {
	Backend  backends.NodeBackend
	Features backends.Features // of the undecorated backend
	NodeID   string
	// StateDir is a directory that only the Service uses. The Service creates it. It must last as long as the mounts.
	StateDir string
	// DelegateFSGroup says that the orchestrator leaves it to the driver to give the files to the fsGroup.
	DelegateFSGroup bool
	// Ownership, unless nil, observes the walks that give files to a group.
	Ownership OwnershipObserver
	// MaxFormats is how many filesystems may be created, checked or repaired at the same time: mkfs and e2fsck need memory
	// in proportion to the size of the disk. 0 stands for DefaultMaxFormats.
	MaxFormats int
	// Contained says that the users of the volumes have another mount namespace, as pods do if the driver runs in a pod.
	// Then nothing is mounted at a place where they would not see it.
	Contained bool
	// Trimmed, unless nil, is called with the number of bytes that each trim of a volume freed.
	Trimmed func(bytes uint64)
	// Now is the clock that decides when a volume is due to be trimmed; nil for time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// DefaultMaxFormats is how many filesystems are created, checked or repaired at the same time. e2fsck on a 1 TiB disk
// can need a gigabyte of memory.
const DefaultMaxFormats = 2

// Service runs the node's operations on one backend.
type Service struct {
	backend   backends.NodeBackend
	features  backends.Features
	nodeID    string
	ownGroups bool
	ownership OwnershipObserver
	repairDir string // intents to repair or grow a filesystem; it exists while there are any
	tools     *filesystem.Tools
	trims     *trim.Schedule
	now       func() time.Time
	ledger    *ledger.Ledger
	failures  failures
	calls     *deadline.Calls // tracks calls that were given up and still run
	silent    unmeasured
	works     *background.Works[filesystem.Found]
	shown     *mount.Propagation // nil where every user sees the mounts
	limits    limits
	log       *slog.Logger
}

// New creates a Service. It loads the ledger and drops the records that a reboot made stale. Kinds: Unavailable when
// the state directory cannot be used; Unsupported when the kernel is too old.
func New(ctx context.Context, config Config) (*Service, error) {
	if err := mount.CheckKernel(); err != nil {
		return nil, err
	}
	log := config.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	boot, err := ledger.BootID()
	if err != nil {
		return nil, err
	}
	records, report, err := openLedger(ctx, config.StateDir, boot, log)
	if err != nil {
		return nil, err
	}
	tell(ctx, log, report)
	s := &Service{
		backend: config.Backend, features: config.Features, nodeID: config.NodeID,
		ownGroups: config.DelegateFSGroup, ownership: config.Ownership,
		repairDir: filepath.Join(config.StateDir, "repairing"),
		tools:     filesystem.NewTools(cmp.Or(config.MaxFormats, DefaultMaxFormats)),
		trims:     trim.NewSchedule(filepath.Join(config.StateDir, "trimmed"), log, config.Trimmed), now: config.Now,
		ledger: records, log: log, calls: &deadline.Calls{},
		works: background.New[filesystem.Found](mostLasting), limits: limits{Grace, searchTime, detachTime, answerTime},
	}
	if config.Contained {
		s.shown = &mount.Propagation{}
	}
	s.resumeTrims()
	return s, nil
}

// openLedger opens the ledger, with spare room for the records that must be written while the disk is full.
func openLedger(ctx context.Context, dir, boot string, log *slog.Logger) (*ledger.Ledger, ledger.Report, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, ledger.Report{}, backends.Errorf(backends.Unavailable, "cannot make the state directory: %w", err)
	}
	room, err := spare.Open(filepath.Join(dir, "spare"))
	if err != nil {
		log.WarnContext(ctx, "should the disk of the state directory be full, no volume can be staged or published: "+
			"the room for records is tried again at the next start", "error", err)
	}
	return ledger.Open(ctx, dir, boot, room)
}

// checkShown refuses a place where the users of the volumes would not see a mount. Kinds: Unavailable.
func (s *Service) checkShown(ctx context.Context, place string) error {
	if s.shown == nil {
		return nil
	}
	return s.shown.Check(ctx, filepath.Dir(place))
}

// GivenUp returns the number of kernel calls that were given up at their deadline and have not returned.
func (s *Service) GivenUp() int { return s.calls.GivenUp() }

// tell logs what the ledger held.
func tell(ctx context.Context, log *slog.Logger, report ledger.Report) {
	tellAside(ctx, log, report)
	for _, why := range report.Unread {
		log.ErrorContext(ctx, "records of volumes cannot be read now: their volumes may be in use, and cannot be staged, "+
			"published or unstaged until the records can be read", "error", why)
	}
	log.InfoContext(ctx, "loaded the records of volumes on this node", "volumes", report.Loaded, "stale", report.Stale,
		"unreadable", len(report.SetAside), "unread", len(report.Unread))
}

func tellAside(ctx context.Context, log *slog.Logger, report ledger.Report) {
	for _, aside := range report.SetAside {
		log.WarnContext(ctx, "a record of a volume cannot be read and was set aside; what is left of the volume is found "+
			"again when it is next staged or unstaged",
			"path", aside.Path, "reason", aside.Reason)
	}
}

// known fails while the record of a volume cannot be read. Unpublish needs no record. What was read is told and
// scheduled even after the call was given up: no other call reads it again. Kinds: Unavailable.
func (s *Service) known(ctx context.Context, volume string) error {
	if s.ledger.Unread(volume) == nil {
		return nil
	}
	call := deadline.Call{Name: fmt.Sprintf("reading the record of volume %q", volume)}
	return deadline.Run(s.calls.With(ctx), call, func(ctx context.Context) error {
		report, err := s.ledger.Known(ctx, volume)
		if report.All {
			tell(ctx, s.log, report)
		} else {
			tellAside(ctx, s.log, report)
		}
		if err == nil || report.All {
			s.scheduleTrims()
		}
		return err
	})
}

// Info describes this node. Kinds: as backends.Limiter and backends.Locator.
func (s *Service) Info(ctx context.Context) (Info, error) {
	info := Info{NodeID: s.nodeID}
	if s.features.Limit != nil {
		limit, err := s.features.Limit.Limit(ctx)
		if err != nil {
			return Info{}, failed("limit", "", err)
		}
		info.MaxVolumes = limit
	}
	if s.features.Locate != nil {
		topology, err := s.features.Locate.Topology(ctx)
		if err != nil {
			return Info{}, failed("locate", "", err)
		}
		info.Topology = topology
	}
	return info, nil
}

// StorageHealth returns what is wrong with the storage as seen from this node. It returns nothing if all is well or the
// backend cannot tell. Kinds: as backends.Inspector.
func (s *Service) StorageHealth(ctx context.Context) ([]backends.StorageIssue, error) {
	if s.features.Inspect == nil {
		return nil, nil
	}
	issues, err := s.features.Inspect.Inspect(ctx)
	return issues, failed("inspect", "", err)
}
