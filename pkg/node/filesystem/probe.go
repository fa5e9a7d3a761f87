package filesystem

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
)

// UnknownData is the Type of a device that holds something that no known signature explains.
const UnknownData = "unknown data"

// Found is what is on a device.
type Found struct {
	// Type is the name that libblkid gives to what was found, such as "ext4", "LVM2_member" or "gpt";
	// several, separated by commas, when the device can be taken for more than one thing; UnknownData; or
	// "" when the device is proven blank.
	Type string
	UUID string
	// SizeBytes is the filesystem's own size, from its superblock; 0 where it is not known. For a btrfs
	// it is the part on this device.
	SizeBytes int64
	// Incomplete tells that mkfs was cut short: the filesystem is there in part and was never usable.
	Incomplete bool
	// Unused tells that the filesystem was never mounted, so that no data can be in it.
	Unused bool
	// Dirty tells that the filesystem was not unmounted cleanly or has errors. Only ext2, 3 and 4 say so
	// in the superblock.
	Dirty bool
	// Unreplayed tells that there is something in the journal that is not where it belongs yet. An
	// xfs tells in its log only: UnreplayedXFS.
	Unreplayed bool
	// Mark is what is noted on the device of its being formatted; zero where nothing is, and where nothing but that is.
	Mark Mark
	// Sampled tells that the device counts as blank though not every byte of it was read.
	Sampled bool
	// Dense tells of an image that was sampled that its file holds more than Probe reads of one, and says where. Format
	// reads that.
	Dense bool
	// Seen says where what was found is, for messages.
	Seen string

	grid grid
}

// Blank reports whether the device was proven to be empty.
func (f Found) Blank() bool { return f.Type == "" }

// String names what was found for messages.
func (f Found) String() string {
	switch {
	case f.Blank():
		return "nothing"
	case f.Mark != Mark{}:
		return fmt.Sprintf("an unfinished %s (noted on the device: being formatted as %s for volume %q)", f.Type,
			f.Mark.FSType, f.Mark.Volume)
	case f.Incomplete:
		return "an unfinished " + f.Type
	case f.Seen != "":
		return fmt.Sprintf("%s (%s)", f.Type, f.Seen)
	}
	return f.Type
}

// Probe reads what is on an open block device or image of so many bytes. It returns once it has read or
// the context ends. A device that cannot be read in full where signatures are is an error, never blank.
// Kinds: Unavailable.
func Probe(ctx context.Context, dev *os.File, size int64) (Found, error) {
	return probeUpTo(ctx, dev, size, reading{quickWhole, quickWhole, nil})
}

// ProbeWhole is Probe for a disk of which every byte is read unless it is larger than WholeLimit, and for an image of
// which all that its file holds is.
func ProbeWhole(ctx context.Context, dev *os.File, size int64) (Found, error) {
	return probeUpTo(ctx, dev, size, reading{WholeLimit, math.MaxInt64, nil})
}

// reading says how much is read of a device that may be blank.
type reading struct {
	quick, most int64
	noted       func(bytes int64)
}

func probeUpTo(ctx context.Context, dev *os.File, size int64, r reading) (Found, error) {
	call := deadline.Call{Name: fmt.Sprintf("reading what is on %q", dev.Name())}
	return deadline.Do(ctx, call, func(ctx context.Context) (Found, error) {
		w := newWindow(dev, size)
		w.quick, w.most, w.noted = r.quick, r.most, r.noted
		found := identify(ctx, w)
		if w.err != nil {
			return Found{}, backends.Errorf(backends.Unavailable, "reading the signature areas of %q (%d bytes): %w", dev.Name(),
				size, w.err)
		}
		return found, nil
	}, nil)
}

// identify decides what a device holds. Nothing it returns counts when w.err is set.
func identify(ctx context.Context, w *window) Found {
	found, known := decide(search(w, signatures()), w.size)
	if !known {
		found, known = decide(search(w, lateSignatures()), w.size)
	}
	if !known {
		blank, sampled := w.blank(ctx)
		if blank {
			return Found{Sampled: sampled, Dense: sampled && w.dense}
		}
		found = Found{Type: UnknownData, Seen: w.seen}
	}
	if !known || found.Incomplete || found.Unused {
		found.Mark = w.mark() // What was used bears none: a page that looks like one is a file's contents there.
	}
	return found
}

// match is one signature that was found.
type match struct {
	Found
	rank   rank
	offset int64 // where the structure is that bears the signature
	owner  bool  // it proves itself, so that it is no contents of a file's, and somebody uses the device by it
}

// rank orders what signatures say. Metadata of a container (RAID, LVM, LUKS ...) outranks a
// filesystem, which may be what is inside or what was there before; a partition table comes last, because
// boot sectors of filesystems look like one.
type rank int

const (
	container rank = iota
	filesystem
	partitions
)

// contents is where a filesystem may keep what its users write. A signature there can be a file's
// contents, and counts only when no filesystem covers the place.
const contents = 32 << 10

func search(w *window, list []signature) []match {
	var matches []match
	for _, s := range list {
		for _, offset := range s.places(w.size) {
			if m, ok := s.look(w, offset); ok {
				matches = append(matches, m)
			}
		}
	}
	return matches
}

// decide picks what the matches say: the highest rank among those that are not covered. Several types
// of that rank make the device ambiguous, and nobody's to touch.
func decide(matches []match, size int64) (Found, bool) {
	var best, others []match
	for _, m := range matches {
		if covered(m, matches, size) {
			continue
		}
		if m.owner && m.rank == partitions {
			m.rank = filesystem // Both are there, and one of them is not in use.
		}
		switch {
		case len(best) == 0 || m.rank < best[0].rank:
			best, others = []match{m}, append(others, best...)
		case m.rank == best[0].rank && !named(best, m.Type):
			best = append(best, m)
		default:
			others = append(others, m)
		}
	}
	if len(best) == 0 {
		return Found{}, false
	}
	found := best[0].Found
	if len(best) > 1 {
		found = Found{Type: strings.Join(types(best), ",")}
	}
	if len(best) > 1 || !makes(found.Type) {
		found.Seen = seen(slices.Concat(best, others))
	}
	return found, true
}

func types(matches []match) []string {
	names := make([]string, len(matches))
	for i, m := range matches {
		names[i] = m.Type
	}
	return names
}

// seen says where matches are.
func seen(matches []match) string {
	texts := make([]string, len(matches))
	for i, m := range matches {
		texts[i] = fmt.Sprintf("%s at byte %d", m.Type, m.offset)
	}
	return strings.Join(texts, ", ")
}

func named(matches []match, name string) bool { return slices.Contains(types(matches), name) }

// covered reports whether a match lies where another match's filesystem keeps its contents. One that is larger than the
// device is not used there, but by something that the device is a part of. At the end of a device tools take a
// container for one whatever is before it, and no mkfs leaves one there: the last 64 KiB at least are cleared by each.
func covered(m match, matches []match, size int64) bool {
	if m.offset < contents || m.Type == "btrfs" || m.owner || m.rank == container && m.offset >= raid09Place(size) {
		return false
	}
	for _, o := range matches {
		if o.rank == filesystem && o.offset < m.offset && m.offset < o.SizeBytes && o.SizeBytes <= size {
			return true
		}
	}
	return false
}
