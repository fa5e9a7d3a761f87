package wipe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"unsafe"

	cryptorand "crypto/rand"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
)

const (
	step      = 64 << 20 // bytes between two checks of the context, and two notes of the position
	atOnce    = 4 << 20  // bytes that are written or read at once
	signArea  = 64 << 20 // bytes at each end that may contain signatures
	whole     = 100
	seedBytes = 32
)

// Device is an open block device to wipe.
type Device struct {
	File      *os.File // open for writing, and exclusively
	SizeBytes int64
	// Note is called after each step with the position, once the data is on the device. An error ends the wipe.
	Note func(position int64) error
}

// Total returns the position at which a wipe by the method ends.
func Total(m method.Method, sizeBytes int64) int64 { return m.Passes() * sizeBytes }

// Percent returns how much of a wipe is done at a position.
func Percent(m method.Method, position, sizeBytes int64) int {
	total := Total(m, sizeBytes)
	if total == 0 {
		return 0
	}
	return int(float64(position) / float64(total) * whole)
}

// Wipe wipes the device by the method, from a position that was noted before, and proves that the method succeeded.
func (d Device) Wipe(ctx context.Context, m method.Method, from int64) error {
	if err := m.Check(); err != nil {
		return err
	}
	if d.SizeBytes <= 0 { // The kernel takes the bytes of a disk that is gone before it takes the disk.
		return fmt.Errorf("%s has %d bytes: the disk is gone", d.File.Name(), d.SizeBytes)
	}
	if m == method.None {
		return nil
	}
	for position := from; position < Total(m, d.SizeBytes); {
		if err := ctx.Err(); err != nil {
			return err
		}
		offset := position % d.SizeBytes
		length := min(step, d.SizeBytes-offset)
		if err := d.pass(m, position/d.SizeBytes, offset, length); err != nil {
			return fmt.Errorf("wiping %s at byte %d: %w", d.File.Name(), offset, err)
		}
		position += length
		if err := d.Note(position); err != nil {
			return err
		}
	}
	if m == method.Signatures {
		if err := d.ends(); err != nil {
			return fmt.Errorf("removing the signatures of %s: %w", d.File.Name(), err)
		}
	}
	return d.prove(ctx, m)
}

// pass does one step of one pass over the device, and makes it durable. The position that is noted next survives a loss
// of power, and so must what is before it: that is not wiped again.
func (d Device) pass(m method.Method, pass, offset, length int64) error {
	if err := d.change(m, pass, offset, length); err != nil {
		return err
	}
	return unix.Fdatasync(int(d.File.Fd()))
}

// change does one step of one pass. The device may keep it in its cache.
func (d Device) change(m method.Method, pass, offset, length int64) error {
	switch {
	case m == method.Discard && pass == 0:
		return d.drop(offset, length)
	case m == method.Discard:
		return d.zeroKept(offset, length)
	case m == method.Shred && pass == 0:
		return d.randomize(offset, length)
	}
	return d.zero(offset, length)
}

// zero sets bytes to zero. The device may drop blocks instead if it guarantees that they read as zeros (BLKZEROOUT).
func (d Device) zero(offset, length int64) error {
	return d.ioctl(unix.BLKZEROOUT, offset, length)
}

func (d Device) randomize(offset, length int64) error {
	var seed [seedBytes]byte
	_, _ = cryptorand.Read(seed[:]) // It never fails.
	source, buffer := rand.NewChaCha8(seed), make([]byte, min(atOnce, length))
	for done := int64(0); done < length; {
		part := buffer[:min(atOnce, length-done)]
		_, _ = source.Read(part) // It never fails.
		if _, err := d.File.WriteAt(part, offset+done); err != nil {
			return err
		}
		done += int64(len(part))
	}
	return nil
}

// ends zeroes both ends of the device, where signatures are.
func (d Device) ends() error {
	head := min(signArea, d.SizeBytes)
	if err := d.zero(0, head); err != nil {
		return err
	}
	if tail := max(head, d.SizeBytes-signArea); tail < d.SizeBytes {
		return d.zero(tail, d.SizeBytes-tail)
	}
	return nil
}

// prove reads the device again and checks that the method succeeded. It makes the kernel forget partitions that no
// longer exist.
func (d Device) prove(ctx context.Context, m method.Method) error {
	if err := unix.Fdatasync(int(d.File.Fd())); err != nil {
		return fmt.Errorf("writing %s: %w", d.File.Name(), err)
	}
	if err := forget(d.File); err != nil {
		return fmt.Errorf("forgetting what was read of %s: %w", d.File.Name(), err)
	}
	found, err := filesystem.ProbeWhole(ctx, d.File, d.SizeBytes)
	if err != nil {
		return err
	}
	if !m.Clean(found.Type, filesystem.UnknownData) {
		return fmt.Errorf("after a wipe by %q %s still holds %s: use the method zero", m, d.File.Name(), found)
	}
	_ = unix.IoctlSetInt(int(d.File.Fd()), unix.BLKRRPART, 0) // A partition has no partitions, and says so.
	return nil
}

// forget makes the kernel read the device again. BLKFLSBUF needs CAP_SYS_ADMIN, which a pod that scrubs a volume lacks.
// Everything is on the device by now, so the other way leaves nothing in memory either.
func forget(device *os.File) error {
	err := unix.IoctlSetInt(int(device.Fd()), unix.BLKFLSBUF, 0)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return unix.Fadvise(int(device.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	return err
}

// ioctl applies a request to a range of bytes.
func (d Device) ioctl(request uint, offset, length int64) error {
	span := [2]uint64{uint64(offset), uint64(length)}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, d.File.Fd(), uintptr(request), uintptr(unsafe.Pointer(&span)))
	if errno != 0 {
		return errno
	}
	return nil
}
