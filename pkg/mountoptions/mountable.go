package mountoptions

import (
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// Filesystems returns the filesystems that a node creates on a device; the first is the default.
func Filesystems() []string { return []string{"ext4", "xfs", "btrfs"} }

// Device is the backends.Mountable of volumes that reach the node as a backends.Device.
type Device struct{}

// Check refuses a filesystem that nodes do not create, and options that are not Allowed for it. Kinds: Invalid.
func (Device) Check(filesystem string, options []string) error {
	if filesystem == "" {
		filesystem = Filesystems()[0]
	}
	if err := CheckFilesystem(filesystem); err != nil {
		return err
	}
	return CheckFor(filesystem, options)
}

// CheckFilesystem refuses a filesystem that nodes do not create on a device. Kinds: Invalid.
func CheckFilesystem(name string) error {
	if slices.Contains(Filesystems(), name) {
		return nil
	}
	return failure.Errorf(failure.Invalid, "filesystem %q is not supported: use %s", secret.Option(name),
		strings.Join(Filesystems(), ", "))
}

// Directory is the backends.Mountable of volumes that reach the node as a backends.Directory.
type Directory struct{}

// Check refuses any named filesystem, and options that a bind mount cannot have. Kinds: Invalid.
func (Directory) Check(filesystem string, options []string) error {
	if filesystem != "" {
		return failure.Errorf(failure.Invalid,
			"filesystem %q is asked for, but the volume is a directory and no device that one could be made on: name none",
			secret.Option(filesystem))
	}
	if err := Check(options); err != nil {
		return err
	}
	other := slices.DeleteFunc(slices.Clone(options), func(option string) bool {
		return option == "ro" || option == "rw" || Ignored(option) || slices.Contains(Attributes(), option)
	})
	if len(other) == 0 {
		return nil
	}
	return failure.Errorf(failure.Invalid,
		"the volume is a directory and cannot be mounted with %s, which only a filesystem can: "+
			"possible are ro, nosuid, nodev, noexec, nosymfollow, noatime, nodiratime, relatime, strictatime "+
			"and their opposites",
		secret.Options(other))
}

// Attributes returns the options that belong to a mount, not to its filesystem (mount_setattr(2)).
func Attributes() []string {
	return strings.Fields("suid nosuid dev nodev exec noexec symfollow nosymfollow " +
		"atime noatime relatime norelatime strictatime nostrictatime diratime nodiratime")
}
