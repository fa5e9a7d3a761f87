package chaos

import (
	"context"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/node"
)

// Defects that are planted to check that the harness finds them.
const (
	forgetsLoop   = "forgets-loop"   // a repeated Unstage leaves a loop device behind
	formatsTwice  = "formats-twice"  // Stage formats again after an interrupted call
	stacksMounts  = "stacks-mounts"  // Publish adds another bind mount over an existing one
	forgetsGroup  = "forgets-group"  // Stage succeeds without changing the group
	claimsSuccess = "claims-success" // Unpublish fails and reports success
)

// planted adds a defect to a Service.
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

// again reports whether this call is a retry: a previous victim has started it, and its volume is recorded or mounted.
func (d defective) again() bool { return len(d.w.state()) > 0 || d.w.mounted(d.w.stagingPath()) }

// Stage formats again, or omits the group.
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

// Unpublish always reports success.
func (d defective) Unpublish(ctx context.Context, volume, target string) error {
	err := d.Service.Unpublish(ctx, volume, target)
	if d.w.plant == claimsSuccess {
		return nil
	}
	return err
}

// Unstage leaves a loop device behind.
func (d defective) Unstage(ctx context.Context, volume, path string) error {
	again := !d.w.mounted(d.w.stagingPath())
	if err := d.Service.Unstage(ctx, volume, path); err != nil || d.w.plant != forgetsLoop || !again {
		return err
	}
	return attach(d.w.data())
}

// attach attaches an image to a loop device that persists.
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
	defer func() { _ = control.Close() }() // it is not written to
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return err
	}
	device, err := os.OpenFile(loopNode(number), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = device.Close() }() // it is not written to
	return unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{Fd: uint32(image.Fd())})
}
