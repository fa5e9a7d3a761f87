package chaos

import (
	"context"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/node"
)

// Defects that are planted to see whether the harness finds them.
const (
	forgetsLoop   = "forgets-loop"   // Unstage leaves a loop device behind when it is repeated
	formatsTwice  = "formats-twice"  // Stage formats again what a call that was cut short left
	stacksMounts  = "stacks-mounts"  // Publish binds once more over what is there
	forgetsGroup  = "forgets-group"  // Stage hands the volume out without having given it to the group
	claimsSuccess = "claims-success" // Unpublish fails and says that it did not
)

// planted puts a defect into a Service.
func (w *world) planted(service *node.Service) operator {
	if w.plant == "" {
		return service
	}
	return defective{service, w}
}

// defective is a Service with a defect.
type defective struct {
	*node.Service
	w *world
}

// again reports whether this is the repetition of a call: a victim began one before, and its volume is
// recorded or mounted.
func (d defective) again() bool { return len(d.w.state()) > 0 || d.w.mounted(d.w.stagingPath()) }

// Stage formats or leaves the group out.
func (d defective) Stage(ctx context.Context, request node.StageRequest) error {
	switch {
	case d.w.plant == formatsTwice && d.again() && !d.w.mounted(d.w.stagingPath()):
		if err := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", d.w.data()).Run(); err != nil {
			return err
		}
	case d.w.plant == forgetsGroup && d.again():
		request.MountGroup = ""
	}
	return d.Service.Stage(ctx, request)
}

// Publish stacks mounts.
func (d defective) Publish(ctx context.Context, request node.PublishRequest) error {
	if err := d.Service.Publish(ctx, request); err != nil || d.w.plant != stacksMounts {
		return err
	}
	return unix.Mount(request.StagingPath, request.TargetPath, "", unix.MS_BIND, "")
}

// Unpublish says that all went well.
func (d defective) Unpublish(ctx context.Context, volume, target string) error {
	err := d.Service.Unpublish(ctx, volume, target)
	if d.w.plant == claimsSuccess {
		return nil
	}
	return err
}

// Unstage leaves a loop device.
func (d defective) Unstage(ctx context.Context, volume, path string) error {
	again := !d.w.mounted(d.w.stagingPath())
	if err := d.Service.Unstage(ctx, volume, path); err != nil || d.w.plant != forgetsLoop || !again {
		return err
	}
	return attach(d.w.data())
}

// attach attaches an image to a loop device that stays.
func attach(path string) error {
	image, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = image.Close() }() // the loop device has its own reference
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }() // nothing is written to it
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return err
	}
	device, err := os.OpenFile(loopNode(number), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = device.Close() }() // nothing is written to it
	return unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{Fd: uint32(image.Fd())})
}
