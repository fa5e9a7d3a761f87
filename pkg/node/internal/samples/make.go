package samples

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Sample is one kind of contents of a device.
type Sample struct {
	Name string
	Want string // its name in a probe's result
	size int64  // 0 for 16 MiB
	// tool creates it; IMAGE stands for the file. If the tool is missing, write writes the relevant bytes.
	tool  []string
	write Writer
	over  Writer // overwrites what the tool made
}

// Writer writes something into a file of the given size.
type Writer func(t *testing.T, f *os.File, size int64)

// Unknown is a probe's name for unknown contents.
const Unknown = "unknown data"

const (
	mib = 1 << 20
	// The areas at the start and the end of a device in which every byte counts.
	headArea = 5 << 20
	tailArea = 1 << 20
)

// Bytes writes fixed bytes at fixed places, given as alternating arguments. Negative places count from the end.
func Bytes(pairs ...any) Writer {
	return func(t *testing.T, f *os.File, size int64) {
		t.Helper()
		for i := 0; i < len(pairs); i += 2 {
			place, known := pairs[i].(int)
			text, isText := pairs[i+1].(string)
			if !known || !isText {
				t.Fatalf("%v, %v: give a place and a text", pairs[i], pairs[i+1])
			}
			offset := int64(place)
			if offset < 0 {
				offset += size
			}
			put(t, f, offset, text)
		}
	}
}

// RAID writes a superblock of Linux software RAID with the major version of the format.
func RAID(version uint32, place func(size int64) int64) Writer {
	return func(t *testing.T, f *os.File, size int64) {
		t.Helper()
		b := make([]byte, 256)
		binary.LittleEndian.PutUint32(b, 0xa92b4efc)
		binary.LittleEndian.PutUint32(b[4:], version)
		binary.LittleEndian.PutUint64(b[144:], uint64(place(size)/512))
		put(t, f, place(size), string(b))
	}
}

// summedRAID writes a superblock with the checksum that the kernel requires to accept the device (md.c, calc_sb_csum
// and calc_sb_1_csum).
func summedRAID(version uint32, place func(size int64) int64) Writer {
	return func(t *testing.T, f *os.File, size int64) {
		t.Helper()
		RAID(version, place)(t, f, size)
		length, at := int64(256), int64(216) // sb_csum
		if version == 0 {
			length, at = 4096, 152
		}
		b := make([]byte, length)
		if _, err := f.ReadAt(b, place(size)); err != nil {
			t.Fatal(err)
		}
		clear(b[at : at+4])
		var sum uint64
		for i := 0; i < len(b); i += 4 {
			sum += uint64(binary.LittleEndian.Uint32(b[i:]))
		}
		put(t, f, place(size)+at, string(binary.LittleEndian.AppendUint32(nil, uint32(sum)+uint32(sum>>32))))
	}
}

// md(4) has its superblocks of version 1.0 and 0.90 at these places.
func raid10Place(size int64) int64 { return (size/512 - 16) &^ 7 * 512 }
func raid09Place(size int64) int64 { return size&^(64<<10-1) - 64<<10 }

func at(offset int64) func(int64) int64 { return func(int64) int64 { return offset } }

func zfs(offset int64) Writer {
	return func(t *testing.T, f *os.File, size int64) {
		t.Helper()
		place := offset
		if place < 0 {
			place += size
		}
		for i := range int64(4) {
			put(t, f, place+128<<10+i<<10, "\x0c\xb1\xba\x00\x00\x00\x00\x00")
		}
	}
}

func put(t *testing.T, f *os.File, offset int64, text string) {
	t.Helper()
	if _, err := f.WriteAt([]byte(text), offset); err != nil {
		t.Fatal(err)
	}
}

// Size returns the size of the device in bytes.
func (s Sample) Size() int64 {
	if s.size == 0 {
		return 16 * mib
	}
	return s.size
}

// Make writes the sample into a file: with the tool if it is installed, by hand otherwise.
func (s Sample) Make(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err == nil {
		err = f.Truncate(s.Size())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was written successfully
	if s.tool != nil {
		s.run(t, path)
		if err := os.Truncate(path, s.Size()); err != nil { // some tools make the file as small as possible
			t.Fatal(err)
		}
		if _, err := f.Seek(0, unix.SEEK_DATA); err == nil {
			if s.over != nil {
				s.over(t, f, s.Size())
			}
			return
		} else if !errors.Is(err, unix.ENXIO) {
			t.Fatal(err)
		}
	}
	if s.write == nil {
		t.Skipf("SKIPPED: %s is not installed", s.tool[0])
	}
	t.Log("made by hand")
	s.write(t, f, s.Size())
}

// run runs the tool, if it is installed.
func (s Sample) run(t *testing.T, path string) {
	t.Helper()
	tool, err := exec.LookPath(s.tool[0])
	if err != nil {
		return
	}
	var args []string
	for _, arg := range s.tool[1:] {
		args = append(args, strings.ReplaceAll(arg, "IMAGE", path))
	}
	if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", s.tool, err, out)
	}
}
