package growth

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

const mib = 1 << 20

// writer is a workload: it appends numbered records to a file until it is stopped.
type writer struct {
	stop  chan struct{}
	ended chan error
	count uint64 // the records written; valid after ended
}

func startWriter(file *os.File) *writer {
	w := &writer{stop: make(chan struct{}), ended: make(chan error, 1)}
	go func() { w.ended <- w.run(file) }()
	return w
}

func (w *writer) run(file *os.File) error {
	for {
		select {
		case <-w.stop:
			return file.Sync()
		default:
		}
		if _, err := file.Write(record(w.count)); err != nil {
			return err
		}
		if w.count++; w.count%16 == 0 {
			if err := file.Sync(); err != nil {
				return err
			}
		}
	}
}

// end stops the workload and returns the number of records that it has written.
func (w *writer) end(t *testing.T) uint64 {
	t.Helper()
	close(w.stop)
	if err := <-w.ended; err != nil {
		t.Fatalf("the workload failed while the volume grew: %v", err)
	}
	return w.count
}

// record returns the record of that number. It has about half a block, so that records are not aligned with blocks.
func record(number uint64) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, number^0x5741474553544f57), 2000/8)
}

// verify reads all records.
func verify(t *testing.T, path string, count uint64) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found := make([]byte, len(record(0)))
	for number := range count {
		if _, err := io.ReadFull(file, found); err != nil || !bytes.Equal(found, record(number)) {
			t.Fatalf("record %d of %d is not what was written (%v)", number, count, err)
		}
	}
	if n, err := file.Read(found); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after %d records there are %d more bytes (%v)", count, n, err)
	}
}

// A volume in use grows. A workload that holds a file open and writes to it continues, sees the new size and can fill
// it. All that it wrote is there, even after the volume was unstaged and staged again.
func TestGrowsInUse(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs"} {
		t.Run(fsType, func(t *testing.T) { testGrowsInUse(t, fsType) })
	}
}

func testGrowsInUse(t *testing.T, fsType string) {
	// The minimum of mkfs.xfs is 300 MiB.
	const before, after = 320 * mib, 640 * mib
	v := newVolume(t, fsType, before)
	if size := v.size(); size > before {
		t.Fatalf("the filesystem has %d bytes before it grows, more than the volume's %d", size, before)
	}
	path := filepath.Join(v.target, "log")
	file, err := os.Create(path)
	v.must(err)
	defer file.Close()
	w := startWriter(file)
	v.expand(after)
	v.expand(after) // a retry, as after a lost answer
	count := w.end(t)
	if count == 0 {
		t.Fatal("the workload wrote nothing while the volume grew")
	}
	if size := v.size(); size < after*85/100 || size > after {
		t.Errorf("the pod sees %d bytes; want nearly %d", size, after)
	}
	verify(t, path, count)
	// The space beyond the old end can be used.
	v.must(unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, before+64*mib))
	v.must(file.Close())
	t.Logf("%s: %d records were written while the volume grew from %d to %d MiB", fsType, count, before/mib, after/mib)

	v.putAway()
	clean(t, fsType, v.image())
	v.show()
	if size := v.size(); size < after*85/100 {
		t.Errorf("after it was brought back the pod sees %d bytes; want nearly %d", size, after)
	}
	verify(t, path, count)
}

// clean checks for damage with the filesystem's own tool.
func clean(t *testing.T, fsType, image string) {
	t.Helper()
	argv := map[string][]string{"ext4": {"e2fsck", "-f", "-n", image}, "xfs": {"xfs_repair", "-n", "-f", image}}[fsType]
	if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", argv, err, out)
	}
}
