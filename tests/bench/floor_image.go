package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// measureImages measures the necessary steps for new images. Each step is timed separately, because mounting and
// detaching need a filesystem and a device.
func (f *floor) measureImages(ctx context.Context) error {
	if f.pool != imagePool {
		return nil
	}
	target := filepath.Join(f.dir, "mounted")
	if err := os.Mkdir(target, 0o700); err != nil {
		return err
	}
	return repeat(ctx, imageRounds, func(int) error { return f.measureImage(ctx, target) })
}

func (f *floor) measureImage(ctx context.Context, target string) error {
	path := filepath.Join(f.dir, "image")
	var image *os.File
	created, err := timed(func() (err error) { image, err = createImage(path, f.size); return err })
	if err != nil {
		return err
	}
	err = f.measureLoop(ctx, image, target)
	removed, errRemove := timed(func() error { return errors.Join(image.Close(), os.Remove(path)) })
	if err := errors.Join(err, errRemove); err != nil {
		return err
	}
	f.imageFile.took = append(f.imageFile.took, created+removed)
	return nil
}

func (f *floor) measureLoop(ctx context.Context, image *os.File, target string) error {
	var device *os.File
	attached, err := timed(func() (err error) { device, err = attachLoop(image, 0); return err })
	if err != nil {
		return err
	}
	err = f.measureFilesystem(ctx, device.Name(), target)
	detached, errDetach := timed(func() error { return detachLoop(device) })
	if err := errors.Join(err, errDetach); err != nil {
		return err
	}
	f.loop.took = append(f.loop.took, attached+detached)
	return nil
}

func (f *floor) measureFilesystem(ctx context.Context, device, target string) error {
	if err := f.mkfs.time(func() error { return makeFilesystem(ctx, f.fsType, device) }); err != nil {
		return err
	}
	return f.filesystem.time(func() error {
		return mounted(target, os.NewSyscallError("mount", unix.Mount(device, target, f.fsType, 0, "")))
	})
}

func timed(f func() error) (time.Duration, error) {
	begin := time.Now()
	err := f()
	return time.Since(begin), err
}

func createImage(path string, size int64) (*os.File, error) {
	image, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := image.Truncate(size); err != nil {
		return nil, errors.Join(err, image.Close())
	}
	return image, nil
}

// attachLoop attaches the file to a loop device that is freed when it is no longer open, even if this process is
// killed. If another process takes the free device first, the kernel returns another one (loop(4), LOOP_CTL_GET_FREE,
// LOOP_CONFIGURE).
func attachLoop(image *os.File, flags uint32) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = control.Close() }() // It was not written to.
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("asking for a free loop device: %w", err)
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(image.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR | flags}}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return device, nil
		}
		if err = errors.Join(err, device.Close()); !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("attaching %s: %w", device.Name(), err)
		}
	}
}

func detachLoop(device *os.File) error {
	err := os.NewSyscallError("LOOP_CLR_FD", unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0))
	return errors.Join(err, device.Close())
}

// makeFilesystem runs mkfs with the fastest options that are safe on a new sparse file, which has nothing to discard.
func makeFilesystem(ctx context.Context, fsType, device string) error {
	args := map[string][]string{"ext4": {"-q", "-E", "nodiscard"}, "xfs": {"-q", "-K"}, "btrfs": {"-q", "-K"}}[fsType]
	out, err := exec.CommandContext(ctx, "mkfs."+fsType, append(args, device)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mkfs.%s: %w: %s", fsType, err, out)
	}
	return nil
}
