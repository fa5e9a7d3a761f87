package nvmet

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/inside"
)

// The address of the target, and its configuration: see nvmetcli's documentation and drivers/nvme/target/configfs.c.
const (
	address, service = "127.0.0.1", "4420"
	config           = "/sys/kernel/config"
	port             = config + "/nvmet/ports/1"
)

// load loads the target and its transport, and creates the port. It is idempotent, and fails outside the guest.
func load(ctx context.Context) error {
	if err := inside.Check(); err != nil {
		return err
	}
	if _, err := os.Stat(port); err == nil {
		return nil
	}
	if err := exec.CommandContext(ctx, "/sbin/modprobe", "-a", "configfs", "nvmet-tcp", "nvme-tcp").Run(); err != nil {
		return err
	}
	if _, err := os.Stat(config + "/nvmet"); errors.Is(err, fs.ErrNotExist) {
		if err := unix.Mount("configfs", config, "configfs", 0, ""); err != nil {
			return err
		}
	}
	return set(port, [][2]string{{"addr_trtype", "tcp"}, {"addr_adrfam", "ipv4"}, {"addr_traddr", address},
		{"addr_trsvcid", service}})
}

func (d Disk) subsystem() string { return config + "/nvmet/subsystems/" + d.name() }

func (d Disk) link() string { return filepath.Join(port, "subsystems", d.name()) }

// serve exposes the disk at the port.
func (d Disk) serve() error {
	err := set(d.subsystem(), [][2]string{{"attr_allow_any_host", "1"}, {"attr_serial", d.Serial},
		{"attr_model", d.Model}})
	if err == nil {
		err = set(filepath.Join(d.subsystem(), "namespaces/1"), [][2]string{{"device_path", d.File}, {"enable", "1"}})
	}
	if err == nil {
		err = os.Symlink(d.subsystem(), d.link())
	}
	return err
}

// withdraw removes the disk from the port, and with it every connection. A missing object is no error.
func (d Disk) withdraw() error {
	var problems []error
	for _, path := range []string{d.link(), filepath.Join(d.subsystem(), "namespaces/1"), d.subsystem()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// set creates an object and sets its attributes, in the given order.
func set(object string, attributes [][2]string) error {
	if err := os.Mkdir(object, 0o755); err != nil {
		return err
	}
	for _, a := range attributes {
		if err := write(filepath.Join(object, a[0]), a[1]); err != nil {
			return err
		}
	}
	return nil
}
