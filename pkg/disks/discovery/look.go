package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/pkg/loops"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/holders"
)

// Patience is how long a device may take to be looked at, before it counts as unusable and the others go on without it.
const Patience = 20 * time.Second

// loopTime is how long a loop device may take to say what it holds.
const loopTime = 2 * time.Second

// History is what is known of a volume from before.
type History struct {
	// Taken volumes are offered, or being wiped: their contents are nobody's business.
	Taken bool
	// Wiped is how the volume was wiped last, if it was not offered since.
	Wiped method.Method
	// Left is the Contents of a device after a wipe that changed nothing; empty where nobody has looked.
	Left string
	// Dirty volumes were offered once and not wiped since, or not as a whole.
	Dirty bool
	// Unproven volumes were offered, and not found free since: they are looked at, and nothing else is offered of their
	// bytes.
	Unproven bool
	// Withdrawn volumes are Unproven, and offered no more.
	Withdrawn bool
}

// Remember returns what is known of the volume of a name.
type Remember func(name string) History

// Find lists the volumes that the configuration selects. A volume that fails is in the list, with the reason.
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
		found = append(found, selectMounts(c.MountPoints, places)...)
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

// volume looks at one that was selected.
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
	selected := v // A look that is given up goes on, and must not read what is written below.
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

// NameOf returns the name of a volume of an identity.
func NameOf(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	const enough = 10 // bytes: no two of a cluster's disks share them
	return "disk-" + hex.EncodeToString(sum[:enough])
}

// busy is a reason for which a volume is in use.
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
	other, err := b.taken(remember)
	switch {
	case err != nil:
		return err
	case b.readOnly:
		return fmt.Errorf("%s refuses writes", b.node())
	case history.Withdrawn && (other != "" || s.part != nil): // Those wait for this one: neither would ever be free.
		History{Dirty: true}.Known(v)
		return nil
	case other != "":
		busy(v, "it shares its bytes with the volume %s, which is offered, or was and is not wiped", other)
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
	return nil
}

// judge says whether a volume that nobody uses can be offered.
func (s selected) judge(v *report.Volume, clean bool, holds string) {
	if v.State = report.Available; !clean && !s.notBlank {
		v.State, v.Message = report.NotBlank, "it holds "+holds
	}
}

// Known reports whether the state of a volume is known without its being opened, and says so.
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

// InUseError says that somebody uses a device.
type InUseError struct{ By string }

// Error is a sentence.
func (e *InUseError) Error() string { return "it is in use: " + e.By }

// OpenAlone opens a block device if nobody else uses it, its disk or a partition of it: neither the kernel, as for a
// mount, RAID or swap, nor a loop device, nor a process. Nobody else can mount it until it is closed.
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

// alone fails when a loop device or a process uses an open device, or one that shares bytes with it.
func alone(ctx context.Context, f *os.File) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFBLK {
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
	if isBlind(ctx, found, os.Getpid()) { // This process is no answer: it has the device open itself.
		return fmt.Errorf("%s may be in use: %s", f.Name(), holders.Found{Partial: true})
	}
	return nil
}

// withoutLoop fails when a loop device holds one of the devices of the numbers.
func withoutLoop(ctx context.Context, numbers []uint64) error {
	attached, err := loops.Attached()
	if err != nil {
		return err
	}
	for _, loop := range attached {
		if number := heldBy(ctx, loop); number != 0 && slices.Contains(numbers, number) {
			return &InUseError{"the loop device " + loop.Path + " holds " + loop.File}
		}
	}
	return nil
}

// heldBy is the number of the block device that a loop device holds, 0 if it holds a file. Its path may be one of
// another mount namespace: then the device is asked. One that does not answer, or fails, asks a server of files in
// vain: the node of a block device is not on one.
func heldBy(ctx context.Context, loop loops.Device) uint64 {
	var file unix.Stat_t
	if err := unix.Stat(loop.File, &file); err == nil {
		if file.Mode&unix.S_IFMT == unix.S_IFBLK {
			return file.Rdev
		}
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, loopTime)
	defer cancel()
	info, err := deadline.Do(ctx, deadline.Call{Name: "asking " + loop.Path + " what it holds"},
		func(context.Context) (*unix.LoopInfo64, error) { return loopInfo(loop.Path) }, nil)
	if err != nil {
		return 0
	}
	return info.Rdevice
}

// isBlind reports whether a search by the process of that number could not have found somebody else. The first process
// of a container sees nobody but what it started itself. Any other sees its node's processes, also where the node is
// itself a container, which alone makes the search partial.
func isBlind(ctx context.Context, found holders.Found, pid int) bool {
	return found.Partial && (ctx.Err() != nil || pid == 1)
}
