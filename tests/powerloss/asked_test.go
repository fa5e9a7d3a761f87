package powerloss

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestTheDriveIsAsked checks that each request of the block layer arrives at the drive in the expected form. All other
// tests depend on that.
func TestTheDriveIsAsked(t *testing.T) {
	demand(t)
	drives, paths := serveDrives(t, 1)
	j := &journal{}
	drives[0].load(make(image, mib/pageSize), j)
	l := attach(t, paths[0])
	device, err := unix.Open(l.path, unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	must(t, err)
	defer func() { must(t, unix.Close(device)) }()
	durable, err := unix.Open(l.path, unix.O_RDWR|unix.O_DIRECT|unix.O_DSYNC|unix.O_CLOEXEC, 0)
	must(t, err)
	defer func() { must(t, unix.Close(durable)) }()
	block := alignedBlock(t)
	copy(block, "power")
	for _, row := range []struct {
		name string
		call func() error
		want []kind
	}{
		{"a write", func() error { _, err := unix.Pwrite(device, block, 4096); return err }, []kind{written}},
		{"a flush", func() error { return unix.Fsync(device) }, []kind{flushed}},
		{"a write with forced unit access", func() error { _, err := unix.Pwrite(durable, block, 8192); return err },
			[]kind{written, flushed}},
		{"a discard", func() error { return discard(device, 4096, 4096) }, []kind{zeroed}},
	} {
		before := len(j.all())
		must(t, row.call())
		var have []kind
		for _, e := range j.all()[before:] {
			have = append(have, e.kind)
		}
		// A synchronous write may flush once for itself and once for its file.
		if have = slices.Compact(have); !slices.Equal(have, row.want) {
			t.Errorf("%s arrives as %v, want %v", row.name, have, row.want)
		}
	}
	got := alignedBlock(t)
	for offset, want := range map[int64][]byte{4096: make([]byte, pageSize), 8192: block} {
		if _, err := unix.Pread(device, got, offset); err != nil || !bytes.Equal(got, want) {
			t.Errorf("at %d there is %.10q, %v, want %.10q", offset, got, err, want)
		}
	}
}

// alignedBlock returns a page of memory, as direct I/O requires.
func alignedBlock(t *testing.T) []byte {
	t.Helper()
	block, err := unix.Mmap(-1, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANONYMOUS|unix.MAP_PRIVATE)
	must(t, err)
	t.Cleanup(func() { must(t, unix.Munmap(block)) })
	return block
}

// discard issues BLKDISCARD.
func discard(device int, offset, length uint64) error {
	extent := [2]uint64{offset, length}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(device), unix.BLKDISCARD,
		uintptr(unsafe.Pointer(&extent))); errno != 0 {
		return errno
	}
	return nil
}
