package hotplug

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/internal/disknode"
	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
)

// Model is the kind of disk that the guest sees.
type Model string

// The models of disks.
const (
	NVMe   Model = "nvme"           // as on EC2: a serial of at most 20 characters
	Virtio Model = "virtio-blk-pci" // as with OpenStack: a serial of at most 20 characters; it can grow
)

// Disk describes a disk to plug in.
type Disk struct {
	Model  Model
	Serial string
	Bytes  int64
	// File is the name of the disk's content in the folder shared with the host. It is created, or grown to Bytes, and
	// stays when the disk is unplugged. Without a name the disk is blank, and its content is lost when it is unplugged.
	File string
}

// Plugged is a disk that is plugged into the guest.
type Plugged struct {
	Disk
	disknode.Node

	machine *Machine
	port    int
	taken   string   // the file that marks the port as taken
	before  []string // the block devices that existed before it
}

func (p *Plugged) id() string { return fmt.Sprintf("plugged%d", p.port) }

// Plug plugs a disk in and waits until the guest has it. There are four ports.
func (m *Machine) Plug(ctx context.Context, d Disk) (*Plugged, error) {
	for port := range wire.SparePorts {
		p := &Plugged{Disk: d, machine: m, port: port}
		p.taken = filepath.Join(wire.SharePoint, p.id()+".img")
		file, err := os.OpenFile(p.taken, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if p.File == "" {
			p.File = filepath.Base(p.taken)
		}
		err = errors.Join(file.Close(), prepare(filepath.Join(wire.SharePoint, p.File), d.Bytes))
		if err == nil {
			err = p.plug()
		}
		if err != nil {
			return nil, errors.Join(err, os.Remove(p.taken))
		}
		if err := p.appear(ctx); err != nil {
			return nil, errors.Join(err, p.Unplug(ctx))
		}
		return p, nil
	}
	return nil, fmt.Errorf("all %d ports for disks are taken", wire.SparePorts)
}

// prepare makes sure that a disk's content has at least the disk's size.
func prepare(path string, bytes int64) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && info.Size() < bytes {
		err = file.Truncate(bytes)
	}
	return errors.Join(err, file.Close())
}

func (p *Plugged) plug() (err error) {
	if p.before, err = blocks(); err != nil {
		return err
	}
	err = p.machine.command("blockdev-add", map[string]any{
		"driver": "raw", "node-name": p.id(),
		// QEMU runs in the shared folder.
		"file": map[string]any{"driver": "file", "filename": p.File},
	})
	if err != nil {
		return err
	}
	err = p.machine.command("device_add", map[string]any{
		"driver": string(p.Model), "id": p.id(), "drive": p.id(), "serial": p.Serial, "bus": fmt.Sprintf("spare%d", p.port),
	})
	if err != nil {
		return errors.Join(err, p.machine.command("blockdev-del", map[string]any{"node-name": p.id()}))
	}
	return nil
}

// appear waits for the device node of the disk with the serial. Another disk may have the same serial.
func (p *Plugged) appear(ctx context.Context) error {
	return until(ctx, "a disk with the serial "+p.Serial, func() (bool, error) {
		now, err := blocks()
		if err != nil {
			return false, err
		}
		for _, block := range now {
			if slices.Contains(p.before, block) {
				continue
			}
			for _, name := range []string{"serial", "device/serial"} {
				// Many have no serial, and some are just being removed.
				text, err := os.ReadFile(filepath.Join("/sys/block", block, name))
				if err == nil && strings.TrimSpace(string(text)) == p.Serial {
					p.Node, err = disknode.At(filepath.Join("/dev", block))
					return err == nil, nil
				}
			}
		}
		return false, nil
	})
}

// blocks returns the names of all block devices.
func blocks() (names []string, err error) {
	entries, err := os.ReadDir("/sys/block")
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// Grow enlarges the disk, as a cloud does while it is in use. QEMU's NVMe disks cannot grow.
func (p *Plugged) Grow(bytes int64) error {
	return p.machine.command("block_resize", map[string]any{"node-name": p.id(), "size": bytes})
}

// Unplug unplugs the disk and waits until the guest has released it.
func (p *Plugged) Unplug(ctx context.Context) error {
	if err := p.eject(ctx); err != nil {
		return err
	}
	for !slices.Contains(p.machine.gone, p.id()) {
		if _, err := p.machine.read(); err != nil {
			return fmt.Errorf("wait for the end of %s: %w", p.Path, err)
		}
	}
	p.machine.gone = slices.DeleteFunc(p.machine.gone, func(id string) bool { return id == p.id() })
	err := until(ctx, "the end of "+p.Path, func() (bool, error) { return p.Gone(), nil })
	return errors.Join(err, p.machine.command("blockdev-del", map[string]any{"node-name": p.id()}), os.Remove(p.taken))
}

// eject asks the guest to release the disk. QEMU refuses while the guest is still busy adding it.
func (p *Plugged) eject(ctx context.Context) (last error) {
	err := until(ctx, "anybody who lets go of "+p.Path, func() (bool, error) {
		if last = p.machine.command("device_del", map[string]any{"id": p.id()}); errors.Is(last, errRefused) {
			return false, nil
		}
		return last == nil, last
	})
	if errors.Is(last, errRefused) {
		return errors.Join(err, last)
	}
	return err
}

// until polls until so returns true.
func until(ctx context.Context, what string, so func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(answerLimit)
	for {
		done, err := so()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return fmt.Errorf("there is no sign of %s after %v", what, answerLimit)
		case <-tick.C:
		}
	}
}
