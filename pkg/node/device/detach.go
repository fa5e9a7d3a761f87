package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/loops"
)

// Detach frees all loop devices of an image and returns once they are free. An image that has none, or that does not
// exist, is no error. Processes that only inspect a device, such as udev's probes, and the kernel's writeback after an
// unmount are waited for until patience is over. Kinds: InUse, naming the loop device, when one is mounted or open for
// longer; Denied when this process may not open the image or a loop device, or may not free it; Unavailable when the
// context ends first: a request to the kernel may then still take effect; otherwise as FindLoops.
func Detach(ctx context.Context, imagePath string, patience time.Duration) error {
	call := deadline.Call{Name: fmt.Sprintf("detaching %q", imagePath), On: onImage(imagePath), Grace: lastWords}
	return deadline.Run(ctx, call, func(ctx context.Context) error {
		image, err := subjectOf(imagePath)
		if err != nil {
			return err
		}
		defer image.close()
		return image.detach(ctx, patience)
	})
}

// DetachFrom is Detach for an image that was attached to the loop device of that number, which avoids a search through
// all of them. The number is a hint. If the loop device holds another image by now, it is left alone and not asked,
// because its server may not answer. sequence is the result of Sequence at that time, or 0. A device that still has
// that sequence number holds what it held then, and is freed even if the image has been renamed or replaced since.
// Kinds: Invalid when the number is not a loop device's; otherwise as Detach.
func DetachFrom(ctx context.Context, imagePath string, major, minor uint32, sequence uint64,
	patience time.Duration) error {
	call := deadline.Call{Name: fmt.Sprintf("detaching %q from device %d:%d", imagePath, major, minor),
		On: onImage(imagePath), Grace: lastWords}
	return deadline.Run(ctx, call, func(ctx context.Context) error {
		loop, err := loopOf(major, minor)
		if err != nil {
			return err
		}
		image, err := subjectOf(imagePath)
		if err != nil {
			return err
		}
		defer image.close()
		shown, holds, err := loop.shown()
		if err != nil {
			return err
		}
		if holds && shown.mayBe(image, sequence) {
			freed, err := loop.detach(ctx, either(sameSequence(sequence), image.held), patience)
			if err != nil || freed {
				return err
			}
		}
		return image.detach(ctx, patience)
	})
}

// DetachDeleted frees the loop device of that number if it holds a deleted file of the volume. It is for callers that
// no longer know which file. The file or its directory is named after the volume's handle, perhaps with an ending after
// a dot. A device that holds another file, or nothing, or that does not exist, is no error. Kinds: as DetachFrom.
func DetachDeleted(ctx context.Context, volume string, major, minor uint32, patience time.Duration) error {
	call := deadline.Call{Name: fmt.Sprintf("detaching device %d:%d", major, minor), Grace: lastWords}
	return deadline.Run(ctx, call, func(ctx context.Context) error {
		loop, err := loopOf(major, minor)
		if err != nil {
			return err
		}
		shown, holds, err := loop.shown()
		if err != nil || !holds || !isDeletedOf(shown.File, volume) {
			return err
		}
		_, err = loop.detach(ctx, holdsDeleted(volume), patience)
		return err
	})
}

// Named reports whether a loop device shows a file of the image's name, which may be the image, or one that was
// deleted. It asks neither the devices nor the image's filesystem, so it waits for no server. Kinds: Unavailable.
func Named(imagePath string) (bool, error) {
	all, err := loops.Attached()
	return slices.ContainsFunc(all, func(d loops.Device) bool {
		return d.Named(imagePath) || d.Named(imagePath+loops.Deleted)
	}), err
}

// onImage returns the key on which opening and detaching an image exclude each other. A detach that was given up may
// still take effect. Until that is settled the image must not be opened and found attached, or a device that was handed
// out raw would be taken away and its number given to another image.
func onImage(imagePath string) string { return "image " + imagePath }

// loopOf returns the loop device of a number. A device that does not exist holds nothing. Kinds: Invalid for another
// device's number; Unavailable.
func loopOf(major, minor uint32) (loopDevice, error) {
	if major != loopMajor {
		return loopDevice{}, backends.Errorf(backends.Invalid, "device %d:%d is not a loop device: their major number is %d",
			major, minor, loopMajor)
	}
	path, err := nodePath(major, minor)
	if errors.Is(err, os.ErrNotExist) {
		return loopDevice{path: fmt.Sprintf("/dev/loop%d", minor)}, nil
	}
	return loopDevice{path: path}, err
}
