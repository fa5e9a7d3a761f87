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

// UnknownData is the Type of a device with contents that no known signature explains.
const UnknownData = "unknown data"

// Found is what is on a device.
type Found struct {
	// Type is libblkid's name for what was found, such as "ext4", "LVM2_member" or "gpt"; several names, separated by
	// commas, if the device is ambiguous; UnknownData; or "" if the device is proven blank.
	Type string
	UUID string
	// SizeBytes is the filesystem's own size, from its superblock; 0 if unknown. For a btrfs it is the part on this
	// device.
	SizeBytes int64
	// Devices is how many devices the filesystem says that it is on, with that of an external journal; 0 if unknown.
	Devices uint64
	// Incomplete says that mkfs was interrupted: part of the filesystem exists, and it was never usable.
	Incomplete bool
	// Unused says that the filesystem was never mounted, so that no data can be in it.
	Unused bool
	// Dirty says that the filesystem was not unmounted cleanly or has errors. Only ext2, 3 and 4 say so in the superblock.
	Dirty bool
	// Unreplayed says that the journal contains changes that are not in place yet. For an xfs only the log tells:
	// UnreplayedXFS.
	Unreplayed bool
	// Mark is the mark of a format in progress; zero if there is none, or if the device holds nothing else.
	Mark Mark
	// Sampled says that the device counts as blank though not every byte of it was read.
	Sampled bool
	// Dense says that the file of a sampled image holds more than Probe reads, and tells where. Format reads that.
	Dense bool
	// Seen says where the contents were found, for messages.
	Seen string

	grid grid
}

// Blank reports whether the device was proven to be empty.
func (f Found) Blank() bool { return f.Type == "" }

// String formats what was found for messages.
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

// Probe reads what is on an open block device or image of this size. It returns once it has read or the context ends. A
// device whose signature areas cannot be read in full is an error, never blank. Kinds: Unavailable.
func Probe(ctx context.Context, dev *os.File, size int64) (Found, error) {
	return probeUpTo(ctx, dev, size, reading{quickWhole, quickWhole, nil})
}

// ProbeWhole is Probe that reads every byte of a disk unless it is larger than WholeLimit, and everything that the file
// of an image holds.
func ProbeWhole(ctx context.Context, dev *os.File, size int64) (Found, error) {
	return probeUpTo(ctx, dev, size, reading{WholeLimit, math.MaxInt64, nil})
}

// reading says how much to read of a device that may be blank.
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

// identify decides what a device holds. Its result is invalid if w.err is set.
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
		found.Mark = w.mark() // A used filesystem has none: a page that looks like one belongs to a file there.
	}
	return found
}

// match is one signature that was found.
type match struct {
	Found
	rank   rank
	offset int64 // the offset of the structure with the signature
	owner  bool  // it is certainly no file's contents, and it is in use
}

// rank orders signatures. Metadata of a container (RAID, LVM, LUKS ...) outranks a filesystem, which may be its
// contents or what was there before. A partition table comes last, because boot sectors of filesystems look like one.
type rank int

const (
	container rank = iota
	filesystem
	partitions
)

// contents is the first offset at which a filesystem may keep its users' data. A signature from there on can be part of
// a file, and counts only if no filesystem covers the place.
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

// decide picks a result from the matches: the highest rank among those that are not covered. Several types of that rank
// make the device ambiguous, and it is left alone.
func decide(matches []match, size int64) (Found, bool) {
	var best, others []match
	for _, m := range matches {
		if covered(m, matches, size) {
			continue
		}
		if m.owner && m.rank == partitions {
			m.rank = filesystem // Both exist, and one of them is not in use.
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

// seen says where the matches are.
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
