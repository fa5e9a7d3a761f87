package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/pkg/loops"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/holders"
)

// Patience is how long looking at a device may take before the device counts as unusable and the others go on without
// it.
const Patience = 20 * time.Second

// loopTime is how long a loop device, or the path of its file, may take to say what it holds.
const loopTime = 2 * time.Second

// History is what is known about a volume from before.
type History struct {
	// Taken volumes are offered, or being wiped: their contents are private.
	Taken bool
	// Wiped is how the volume was last wiped, if it was not offered since.
	Wiped method.Method
	// Left is the Contents of a device after a wipe that changed nothing; empty if they are unknown.
	Left string
	// Dirty volumes were offered once, and not or not completely wiped since.
	Dirty bool
	// Unproven volumes were offered, and not found free since. They are examined, and nothing else that shares their bytes
	// is offered.
	Unproven bool
	// Withdrawn volumes are Unproven, and no longer offered.
	Withdrawn bool
}

// Remember returns what is known about the volume of a name.
type Remember func(name string) History

// Find returns the volumes that the configuration selects. It includes volumes that fail, with the reason.
func (c Config) Find(ctx context.Context, remember Remember) ([]report.Volume, error) {
	all, err := blocks()
	if err != nil {
		return nil, err
	}
	found, err := selectDevices(c.Devices, all)
	if err != nil {
		return nil, err
	}
	if len(c.MountPoints) > 0 {
		places, err := mounts()
		if err != nil {
			return nil, err
		}
		found = append(found, selectMounts(ctx, c.MountPoints, places)...)
	}
	volumes := make(chan report.Volume, len(found))
	for _, s := range found {
		go func() { volumes <- s.volume(ctx, remember) }()
	}
	list := make([]report.Volume, 0, len(found))
	for range found {
		list = append(list, <-volumes)
	}
	return settle(list), nil
}

// volume examines a selected device or mount.
func (s selected) volume(ctx context.Context, remember Remember) report.Volume {
	v := report.Volume{Mode: report.Block, State: report.Unusable}
	look := s.lookAtDevice
	if s.mount != nil {
		v.Mode, v.Path, v.Device, v.SizeBytes = report.Filesystem, s.mount.Mountpoint, s.mount.Source, s.mount.size
		look = s.lookAtMount
	} else {
		v.Device, v.SizeBytes = s.block.node(), s.block.size
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	selected := v // An abandoned look continues, and must not read what is written below.
	call := deadline.Call{Name: "looking at " + v.Device, On: "looking at " + v.Device + " " + v.Path}
	seen, err := deadline.Do(ctx, call, func(ctx context.Context) (report.Volume, error) {
		seen := selected
		return seen, look(ctx, &seen, remember)
	}, nil)
	if seen.Name != "" {
		v = seen
	}
	if err != nil {
		v.State, v.Message = report.Unusable, err.Error()
	}
	return v
}

// NameOf returns the name of the volume with an identity.
func NameOf(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	const enough = 10 // bytes: unique among the disks of a cluster
	return "disk-" + hex.EncodeToString(sum[:enough])
}

// busy marks a volume as in use, with the reason.
func busy(v *report.Volume, format string, args ...any) {
	v.State, v.Message = report.InUse, fmt.Sprintf(format, args...)
}

func (s selected) lookAtDevice(ctx context.Context, v *report.Volume, remember Remember) (err error) {
	b := s.block
	if v.Identity, err = IdentityOf(b.major, b.minor); err != nil {
		return err
	}
	v.Name = NameOf(v.Identity)
	history := remember(v.Name)
	if history.Known(v) {
		return nil
	}
	relatives, err := Relatives(b.major, b.minor)
	if err != nil {
		return err
	}
	other := remember.taken(relatives)
	switch {
	case b.readOnly:
		return fmt.Errorf("%s refuses writes", b.node())
	case other != "":
		history.shares(v, other)
		return nil
	case history.Withdrawn && s.part != nil: // The partition waits for this one: neither would ever be free.
		History{Dirty: true}.Known(v)
		return nil
	case s.part != nil:
		busy(v, "its partition %s is found as a volume of its own", s.part.node())
		return nil
	case len(b.holders) > 0:
		busy(v, "%s uses it", b.holders[0])
		return nil
	}
	f, err := OpenAlone(ctx, b.node(), os.O_RDONLY)
	if used, ok := errors.AsType[*InUseError](err); ok {
		busy(v, "%s", used.By)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // open for reading only
	found, err := filesystem.Probe(ctx, f, b.size)
	if err != nil {
		return err
	}
	s.judge(v, history.isLeft(found), found.String())
	return s.examine(ctx, v, history, found, remember)
}

// examine looks for offered volumes among the filesystems on an unused device and its partitions. One of them may only
// be unmounted at the moment. The partitions are read only if the device would be offered.
func (s selected) examine(ctx context.Context, v *report.Volume, history History, found filesystem.Found,
	remember Remember) error {
	names := nameOn(found)
	if v.State == report.Available {
		parts, err := s.block.onPartitions(ctx)
		if err != nil {
			return err
		}
		names = append(names, parts...)
	}
	if other := remember.taken(names); other != "" {
		history.shares(v, other)
	}
	return nil
}

// judge decides whether an unused volume can be offered.
func (s selected) judge(v *report.Volume, clean bool, holds string) {
	if v.State = report.Available; !clean && !s.notBlank {
		v.State, v.Message = report.NotBlank, "it holds "+holds
	}
}

// Known reports whether the state of a volume is known without opening it, and sets it.
func (h History) Known(v *report.Volume) bool {
	switch {
	case h.Taken:
		v.State = report.Offered
	case h.Dirty:
		v.State, v.Message = report.Dirty,
			"it was offered before and not wiped since, or its wipe was cut short: name it in the annotation"+
				" stowage.dev/reclaim to have it wiped"
	}
	return h.Taken || h.Dirty
}

// InUseError says that a device is in use.
type InUseError struct{ By string }

// Error returns a sentence.
func (e *InUseError) Error() string { return "it is in use: " + e.By }

// OpenAlone opens a block device if nothing else uses the device, its disk or a partition of it: neither the kernel, as
// for a mount, RAID or swap, nor a loop device, nor a process. Nobody else can mount it until it is closed.
func OpenAlone(ctx context.Context, node string, flags int) (*os.File, error) {
	f, err := os.OpenFile(node, flags|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, &InUseError{"the kernel has it in use, as for a mount, a RAID or swap"}
	}
	if err != nil {
		return nil, err
	}
	if err := alone(ctx, f); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// alone fails if a loop device or a process uses an open device, or one that shares bytes with it.
func alone(ctx context.Context, f *os.File) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil || !isBlock(stat.Mode) {
		return fmt.Errorf("%s is not a block device (%w)", f.Name(), err)
	}
	relatives, err := relativesOf(unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	if err != nil {
		return err
	}
	subject := holders.OfDevice(f.Name(), unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	for _, r := range relatives {
		subject.Others = append(subject.Others, r.number())
	}
	if err := withoutLoop(ctx, append(subject.Others, stat.Rdev)); err != nil {
		return err
	}
	found := holders.Of(ctx, subject)
	for _, h := range found.Holders {
		if h.PID != os.Getpid() {
			return &InUseError{h.String()}
		}
	}
	if isBlind(ctx, found, os.Getpid()) { // This process does not count: it has the device open itself.
		return fmt.Errorf("%s may be in use: %s", f.Name(), holders.Found{Partial: true})
	}
	return nil
}

// withoutLoop fails if a loop device holds one of the devices of the numbers.
func withoutLoop(ctx context.Context, numbers []uint64) error {
	attached, err := loops.Attached()
	if err != nil {
		return err
	}
	held := make([]uint64, len(attached))
	var asked sync.WaitGroup // All are asked at once, because several may wait for a file server.
	for i, loop := range attached {
		asked.Go(func() { held[i] = heldBy(ctx, loop) })
	}
	asked.Wait()
	for i, loop := range attached {
		if held[i] != 0 && slices.Contains(numbers, held[i]) {
			return &InUseError{"the loop device " + loop.Path + " holds " + loop.File}
		}
	}
	return nil
}

// heldBy returns the number of the block device that a loop device holds, 0 if it holds a file. A path below /dev is
// on no file server: it answers, and is given all the time that a busy machine takes. If another path does not exist
// here, or does not answer, it may be one of another mount namespace, and the loop device is asked. A loop device that
// does not answer, or fails, waits for a file server. It holds no block device, because the node of one is not on a
// server.
func heldBy(ctx context.Context, loop loops.Device) uint64 {
	var node unix.Stat_t
	if strings.HasPrefix(loop.File, "/dev/") && unix.Stat(loop.File, &node) == nil && isBlock(node.Mode) {
		return node.Rdev
	}
	file, err := ask(ctx, "looking at "+loop.File+" of "+loop.Path, func() (file unix.Stat_t, err error) {
		err = unix.Stat(loop.File, &file)
		return file, err
	})
	if err == nil {
		if isBlock(file.Mode) {
			return file.Rdev
		}
		return 0
	}
	info, err := ask(ctx, "asking "+loop.Path+" what it holds",
		func() (*unix.LoopInfo64, error) { return loopInfo(loop.Path) })
	if err != nil {
		return 0
	}
	return info.Rdevice
}

func isBlock(mode uint32) bool { return mode&unix.S_IFMT == unix.S_IFBLK }

// ask makes a call that may wait for a file server, for at most loopTime.
func ask[T any](ctx context.Context, name string, call func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, loopTime)
	defer cancel()
	return deadline.Do(ctx, deadline.Call{Name: name}, func(context.Context) (T, error) { return call() }, nil)
}

// isBlind reports whether a search by the process of that number could have missed other processes. The first process
// of a container sees only the processes that it started. Any other process sees the processes of its node, even if the
// node is itself a container, which alone makes the search partial.
func isBlind(ctx context.Context, found holders.Found, pid int) bool {
	return found.Partial && (ctx.Err() != nil || pid == 1)
}
