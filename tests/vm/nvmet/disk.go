package nvmet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/internal/disknode"
)

// patience is the limit for asynchronous work of the kernel, with an emulated processor.
const patience = 2 * time.Minute

// Disk describes a disk to plug in.
type Disk struct {
	Serial string // at most 20 characters
	Model  string // at most 40
	File   string // the path of its content, which stays when the disk is unplugged
}

// Plugged is a disk that is plugged into the guest.
type Plugged struct {
	Disk
	disknode.Node
	controller string // its folder in sysfs
}

func (d Disk) name() string { return "nqn.2026-11.dev.stowage:" + d.Serial }

// Plug plugs a disk in and waits until the guest has it.
func Plug(ctx context.Context, d Disk) (*Plugged, error) {
	if err := load(ctx); err != nil {
		return nil, err
	}
	if err := d.serve(); err != nil {
		return nil, errors.Join(err, d.withdraw())
	}
	p := &Plugged{Disk: d}
	err := p.connect()
	if err == nil {
		err = p.appear(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, d.withdraw())
	}
	return p, nil
}

// connect connects the host to the disk. When the connection is lost, the host gives up after a second.
func (p *Plugged) connect() error {
	file, err := os.OpenFile("/dev/nvme-fabrics", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "transport=tcp,traddr=%s,trsvcid=%s,nqn=%s,reconnect_delay=1,ctrl_loss_tmo=1", address,
		service, p.name())
	return errors.Join(err, file.Close())
}

// appear waits for the device node. If the kernel knows several paths to a disk, only the disk itself has a node.
func (p *Plugged) appear(ctx context.Context) error {
	return until(ctx, "a disk with the serial "+p.Serial, func() bool {
		found, _ := filepath.Glob("/sys/block/nvme*/device/serial")
		for _, path := range found {
			block := filepath.Base(filepath.Dir(filepath.Dir(path)))
			node, missing := disknode.At(filepath.Join("/dev", block))
			if missing == nil && reads(path) == p.Serial && reads(filepath.Join(filepath.Dir(path), "model")) == p.Model {
				p.Node = node
			}
		}
		controllers, _ := filepath.Glob("/sys/class/nvme/nvme*/subsysnqn")
		for _, path := range controllers {
			if reads(path) == p.name() {
				p.controller = filepath.Dir(path)
			}
		}
		return p.Path != "" && p.controller != ""
	})
}

// Grow enlarges the disk, and notifies the host, which rescans it asynchronously.
func (p *Plugged) Grow(bytes int64) error {
	if err := os.Truncate(p.File, bytes); err != nil {
		return err
	}
	return write(filepath.Join(p.subsystem(), "namespaces/1/revalidate_size"), "1")
}

// Unplug unplugs the disk after pending writes.
func (p *Plugged) Unplug(ctx context.Context) error {
	if err := write(filepath.Join(p.controller, "delete_controller"), "1"); err != nil {
		return err
	}
	return errors.Join(p.gone(ctx), p.withdraw())
}

// Tear removes the disk without notice to the host. Pending writes are lost.
func (p *Plugged) Tear(ctx context.Context) error { return errors.Join(p.withdraw(), p.gone(ctx)) }

// gone waits until the disk is gone.
func (p *Plugged) gone(ctx context.Context) error {
	return until(ctx, "the end of "+p.Path, p.Gone)
}

// reads returns a file's text without surrounding space, or an empty string if the file does not exist.
func reads(path string) string {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text))
}

func write(path, text string) error { return os.WriteFile(path, []byte(text), 0) }

// until polls until so returns true.
func until(ctx context.Context, what string, so func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !so() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return fmt.Errorf("there is no sign of %s after %v", what, patience)
		case <-tick.C:
		}
	}
	return nil
}
