package wipe

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"
)

// drop tells the device to drop blocks. A device need not do so, and one that cannot keeps them all: the later read of
// all bytes finds what was kept.
func (d Device) drop(offset, length int64) error {
	err := d.ioctl(unix.BLKDISCARD, offset, length)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// zeroKept reads bytes that the device was told to drop, and writes zeros where it kept data, which samples would not
// find completely. Then it reads what it wrote. Data that was read is dropped from memory, which others need.
func (d Device) zeroKept(offset, length int64) error {
	if offset == 0 {
		if err := forget(d.File); err != nil {
			return err
		}
	}
	zeros := make([]byte, min(atOnce, length))
	kept, err := d.eachKept(offset, length, func(at int64, size int) error {
		_, err := d.File.WriteAt(zeros[:size], at)
		return err
	})
	if err != nil || kept == 0 {
		return err
	}
	if err := unix.Fdatasync(int(d.File.Fd())); err != nil {
		return err
	}
	if err := unix.Fadvise(int(d.File.Fd()), offset, length, unix.FADV_DONTNEED); err != nil {
		return err
	}
	_, err = d.eachKept(offset, length, func(int64, int) error {
		return errors.New("it kept data that it was told to drop, and that zeros were written over: take it out of use")
	})
	return err
}

// eachKept reads bytes, calls work with each part that is not zero, and returns the number of these parts.
func (d Device) eachKept(offset, length int64, work func(at int64, size int) error) (kept int, err error) {
	zeros, buffer := make([]byte, min(atOnce, length)), make([]byte, min(atOnce, length))
	for done := int64(0); done < length; {
		part := buffer[:min(atOnce, length-done)]
		if _, err := d.File.ReadAt(part, offset+done); err != nil {
			return kept, err
		}
		if !bytes.Equal(part, zeros[:len(part)]) {
			kept++
			if err := work(offset+done, len(part)); err != nil {
				return kept, err
			}
		}
		done += int64(len(part))
	}
	return kept, unix.Fadvise(int(d.File.Fd()), offset, length, unix.FADV_DONTNEED)
}
