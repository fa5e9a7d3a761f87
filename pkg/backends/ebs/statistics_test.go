package ebs

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// aPage returns a log page. The offsets are those of struct amzn_latency_log_page_base, which Amazon wrote for nvme-cli
// (plugins/amzn/amzn-nvme.c).
func aPage() []byte {
	data := make([]byte, 4096)
	put := binary.LittleEndian.PutUint64
	binary.LittleEndian.PutUint32(data, 0x3C23B510)
	binary.LittleEndian.PutUint32(data[4:], 1) // the version
	for i := range 10 {
		put(data[8+8*i:], uint64(i+1)*1_000_000)
	}
	put(data[88:], 11) // the length of the queue
	for _, histogram := range []int{512, 2056} {
		put(data[histogram:], 3)
		for i, bin := range []struct{ upper, count uint64 }{{1000, 5}, {2000, 0}, {1<<64 - 1, 2}} {
			put(data[histogram+8+24*i+8:], bin.upper)
			binary.LittleEndian.PutUint32(data[histogram+8+24*i+16:], uint32(bin.count))
			binary.LittleEndian.PutUint32(data[histogram+8+24*i+20:], 0xFFFFFFFF) // reserved
		}
	}
	return data
}

// measuring returns a node whose disk answers with a page.
func measuring(data []byte, err error) *node {
	return &node{b: &backend{config: Config{LogPage: func(string, string) ([]byte, error) { return data, err }}}}
}

const aVolume = "vol-0123456789abcdef0"

func TestMeasure(t *testing.T) {
	read, err := measuring(aPage(), nil).Measure(t.Context(), aVolume, "/dev/nvme1n1")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]backends.Measurement{}
	for _, m := range read {
		got[strings.TrimPrefix(m.Name, "aws_ebs_csi_")] = m
		if m.Help == "" || m.Counter != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%+v lacks its help, or has the wrong type", m)
		}
	}
	for name, want := range map[string]float64{
		"read_ops_total": 1e6, "write_ops_total": 2e6, "read_bytes_total": 3e6, "write_bytes_total": 4e6,
		"read_seconds_total": 5, "write_seconds_total": 6,
		"exceeded_iops_seconds_total": 7, "exceeded_tp_seconds_total": 8,
		"ec2_exceeded_iops_seconds_total": 9, "ec2_exceeded_tp_seconds_total": 10, "volume_queue_length": 11,
		"read_io_latency_seconds": 5, "write_io_latency_seconds": 6,
	} {
		m, there := got[name]
		if !there || m.Value != want {
			t.Errorf("%s is %+v, want %g", name, m, want)
		}
		if !strings.HasSuffix(name, "_latency_seconds") {
			continue
		}
		if m.Count != 7 || len(m.Buckets) != 2 || m.Buckets[.001] != 5 || m.Buckets[.002] != 5 {
			t.Errorf("%s is the histogram %+v, want 5 of 7 below a millisecond", name, m)
		}
	}
	if len(got) != 13 {
		t.Errorf("%d metrics, want 13", len(got))
	}
}

func TestMeasureOtherPages(t *testing.T) {
	change := func(edit func(data []byte)) []byte {
		data := aPage()
		edit(data)
		return data
	}
	for name, row := range map[string]struct {
		data []byte
		says string
	}{
		"an instance store": {change(func(data []byte) { binary.LittleEndian.PutUint32(data, 0xEC2C0D7E) }), "0xEC2C0D7E"},
		"an empty page":     {make([]byte, 4096), "0x00000000"},
		"a short page":      {aPage()[:512], "512 bytes"},
		"no page":           {nil, "0 bytes"},
		"too many bins":     {change(func(data []byte) { data[512] = 65 }), "65 bins"},
		"unordered bins":    {change(func(data []byte) { data[2056+8+24+8+1] = 0 }), "not in order"},
	} {
		_, err := measuring(row.data, nil).Measure(t.Context(), aVolume, "/dev/nvme1n1")
		if !backends.Is(err, backends.Unavailable) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v, want Unavailable with %q", name, err, row.says)
		}
	}
	gone := backends.Errorf(backends.Unavailable, "gone: %w", os.ErrNotExist)
	if _, err := measuring(nil, gone).Measure(t.Context(), aVolume, "/dev/nvme1n1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a disk that is gone: %v", err)
	}
	if _, err := measuring(aPage(), nil).Measure(t.Context(), "../etc", "/dev/nvme1n1"); !backends.Is(err,
		backends.NotFound) {
		t.Errorf("a handle that no volume has: %v", err)
	}
}

// TestOnlyTheVolumesDiskIsMeasured checks what Measure refuses before it sends a command.
func TestOnlyTheVolumesDiskIsMeasured(t *testing.T) {
	sys := t.TempDir()
	n := &node{b: &backend{config: Config{SysBlock: sys}}}
	for path, text := range map[string]string{"nvme1n1/dev": "259:1\n",
		"nvme1n1/device/serial": "vol0123456789abcdef0 \n"} {
		path = filepath.Join(sys, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const serial = "vol0123456789abcdef0"
	if err := n.proveDisk("nvme1n1", "259:1", serial); err != nil {
		t.Errorf("the volume's disk: %v", err)
	}
	for says, err := range map[string]error{
		"given its name":   n.proveDisk("nvme1n1", "259:2", serial),
		"another disk":     n.proveDisk("nvme1n1", "259:1", "vol0fedcba9876543210"),
		"shows no NVMe":    n.proveDisk("nvme2n1", "259:1", serial),
		"no block device":  errOf(n.Measure(t.Context(), aVolume, "/dev/null")),
		"cannot be opened": errOf(n.Measure(t.Context(), aVolume, filepath.Join(sys, "nvme3n1"))),
	} {
		if !backends.Is(err, backends.Unavailable) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want Unavailable with %q", err, says)
		}
	}
}

func errOf(_ []backends.Measurement, err error) error { return err }

// TestAdminCommand checks the command against struct nvme_passthru_cmd of linux/nvme_ioctl.h, and sends it to a file
// that is no NVMe disk.
func TestAdminCommand(t *testing.T) {
	var c adminCommand
	if got := [5]uintptr{unsafe.Sizeof(c), unsafe.Offsetof(c.namespace), unsafe.Offsetof(c.address),
		unsafe.Offsetof(c.length), unsafe.Offsetof(c.dword10)}; got != [5]uintptr{72, 4, 24, 36, 40} {
		t.Errorf("size and offsets are %d", got)
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if data, err := logPage(file); err == nil || data != nil {
		t.Errorf("got %d bytes, %v", len(data), err)
	}
}
