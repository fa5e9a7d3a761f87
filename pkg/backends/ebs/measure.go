package ebs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// Measure reads the statistics that EBS keeps of a volume's attachment to this instance. Kinds: NotFound for a handle
// that no volume can have; Unavailable when the device is not the volume's, or gives no statistics.
func (n *node) Measure(_ context.Context, handle, device string) (_ []backends.Measurement, err error) {
	defer annotate(&err, "measure", handle)
	if !isID("vol", handle) {
		return nil, backends.Errorf(backends.NotFound, "there is no volume %q: handles are such as vol-0123456789abcdef0",
			handle)
	}
	read := n.b.config.LogPage
	if read == nil {
		read = n.readPage
	}
	data, err := read(device, strings.Replace(handle, "-", "", 1))
	if err != nil {
		return nil, err
	}
	found, err := parseStatistics(data)
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "%s gives no statistics of EBS: %w", device, err)
	}
	return found.measurements(), nil
}

// readPage reads the log page of the disk with the serial number. Kinds: Unavailable.
func (n *node) readPage(device, serial string) ([]byte, error) {
	// A device that is opened for writing would make udev look for new filesystems on it at each measurement.
	file, err := rawfile.Open(device, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "the device cannot be opened: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "%s cannot be examined: %w", device, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return nil, backends.Errorf(backends.Unavailable, "%s is no block device", device)
	}
	// While the device is open, no other disk gets its number.
	number := fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	if err := n.proveDisk(filepath.Base(device), number, serial); err != nil {
		return nil, err
	}
	data, err := logPage(file)
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "%s gives no statistics: %w", device, err)
	}
	return data, nil
}

// proveDisk checks that the disk of that number is the one with the serial number. Kinds: Unavailable.
func (n *node) proveDisk(name, number, serial string) error {
	dir := filepath.Join(n.b.config.SysBlock, name)
	shown, err := os.ReadFile(filepath.Join(dir, "dev"))
	has, other := os.ReadFile(filepath.Join(dir, "device", "serial"))
	if err := errors.Join(err, other); err != nil {
		return backends.Errorf(backends.Unavailable, "the kernel shows no NVMe disk %s: %w", name, err)
	}
	if got := trimmed(shown); got != number {
		return backends.Errorf(backends.Unavailable, "the device %s is open, and the kernel has given its name %s to %s",
			number, name, got)
	}
	if got := trimmed(has); got != serial {
		return backends.Errorf(backends.Unavailable, "%s is another disk: its serial number is %q, the volume's is %q",
			name, got, serial)
	}
	return nil
}

// trimmed returns an attribute of the kernel without its padding.
func trimmed(text []byte) string { return strings.Trim(string(text), " \n\x00") }

// adminCommand is struct nvme_passthru_cmd of linux/nvme_ioctl.h, with the fields that the command needs.
type adminCommand struct {
	opcode    uint8
	_         [3]byte
	namespace uint32
	_         [4]uint32
	address   uint64
	_         uint32
	length    uint32
	dword10   uint32
	_         [7]uint32 // the rest of the command, its timeout and its result
}

const (
	adminIoctl     = 0xC0484E41 // NVME_IOCTL_ADMIN_CMD
	getLogPage     = 0x02       // NVM Express Base Specification, "Get Log Page command"
	statisticsPage = 0xD0
	pageLength     = 4096
)

// logPage reads the log page of EBS from an NVMe disk. The command has the kernel's own timeout, which is a minute. A
// shorter one would hit the disk's users: at its end the kernel resets the controller.
func logPage(disk *os.File) ([]byte, error) {
	page := make([]byte, pageLength)
	command := adminCommand{opcode: getLogPage, namespace: 1, length: pageLength,
		address: uint64(uintptr(unsafe.Pointer(&page[0]))),
		dword10: statisticsPage | (pageLength/4-1)<<16} // the number of dwords, less one
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, disk.Fd(), adminIoctl, uintptr(unsafe.Pointer(&command)))
	runtime.KeepAlive(page) // Its address is a number, which keeps nothing alive.
	if errno != 0 {
		return nil, fmt.Errorf("the kernel refuses to ask for its log page: %w", errno)
	}
	if status != 0 {
		return nil, fmt.Errorf("it refuses to show its log page: NVMe status 0x%x", status)
	}
	return page, nil
}
