package mount

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// attribute knows the options that belong to a mount, not to its filesystem (mount_setattr(2)). Each
// first clears some flags and then sets some.
func attribute(option string) (set, reset int, ok bool) {
	switch option {
	case "nosuid":
		return unix.MOUNT_ATTR_NOSUID, 0, true
	case "suid":
		return 0, unix.MOUNT_ATTR_NOSUID, true
	case "nodev":
		return unix.MOUNT_ATTR_NODEV, 0, true
	case "dev":
		return 0, unix.MOUNT_ATTR_NODEV, true
	case "noexec":
		return unix.MOUNT_ATTR_NOEXEC, 0, true
	case "exec":
		return 0, unix.MOUNT_ATTR_NOEXEC, true
	case "nosymfollow":
		return unix.MOUNT_ATTR_NOSYMFOLLOW, 0, true
	case "symfollow":
		return 0, unix.MOUNT_ATTR_NOSYMFOLLOW, true
	}
	return accessTime(option)
}

// accessTime is the part of attribute that says when access times are written.
func accessTime(option string) (set, reset int, ok bool) {
	switch option {
	case "noatime":
		return unix.MOUNT_ATTR_NOATIME, unix.MOUNT_ATTR__ATIME, true
	case "strictatime":
		return unix.MOUNT_ATTR_STRICTATIME, unix.MOUNT_ATTR__ATIME, true
	case "relatime", "atime", "norelatime", "nostrictatime":
		return unix.MOUNT_ATTR_RELATIME, unix.MOUNT_ATTR__ATIME, true
	case "nodiratime":
		return unix.MOUNT_ATTR_NODIRATIME, 0, true
	case "diratime":
		return 0, unix.MOUNT_ATTR_NODIRATIME, true
	}
	return 0, 0, false
}

// ignored are the options that mean something to the tools around fstab(5) only, and are harmless.
func ignored(option string) bool {
	switch option {
	case "defaults", "_netdev", "nofail":
		return true
	}
	return false
}

// refusal says why an option is never allowed, whatever the filesystem; nothing for the others. These
// change what is mounted or who may mount it, or are instructions to mount(8), which is not used.
func refusal(option string) string {
	name, _, _ := strings.Cut(option, "=")
	switch name {
	case "bind", "rbind", "remount", "move", "rec", "beneath",
		"shared", "rshared", "slave", "rslave", "private", "rprivate", "unbindable", "runbindable":
		return "it would change other mounts"
	case "loop", "offset", "sizelimit", "source":
		return "it would change what is mounted"
	case "user", "users", "nouser", "owner", "group", "auto", "noauto", "helper", "uhelper", "fd":
		return "it is an instruction to other tools"
	}
	if strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "X-") || strings.HasPrefix(name, "verity.") {
		return "it is an instruction to other tools"
	}
	return ""
}

// CheckOptions checks the form of mount options, each one element of the list, and refuses those that
// are never allowed. What a filesystem makes of the others is known only when it is mounted.
// Kinds: Invalid, naming the option.
func CheckOptions(options []string) error {
	for _, option := range options {
		if err := checkOption(option); err != nil {
			return err
		}
	}
	return nil
}

func checkOption(option string) error {
	shown := secret.Option(option)
	switch {
	case option == "":
		return backends.Errorf(backends.Invalid, "a mount option is empty: leave it out")
	case strings.HasPrefix(option, "="):
		return backends.Errorf(backends.Invalid, "mount option %q has no name", shown)
	case strings.ContainsAny(option, "\x00\n"):
		return backends.Errorf(backends.Invalid, "mount option %q contains a NUL byte or a line break", shown)
	case strings.ContainsRune(option, ',') && !securityLabel(option):
		return backends.Errorf(backends.Invalid, "mount option %q contains a comma: give each option as an entry of its own", shown)
	case len(option) > maxOption:
		return backends.Errorf(backends.Invalid, "mount option %.32q... is %d bytes long: at most %d are allowed", shown, len(option), maxOption)
	}
	if why := refusal(option); why != "" {
		return backends.Errorf(backends.Invalid, "mount option %q is not allowed: %s", shown, why)
	}
	return nil
}

// securityLabel recognises the options that carry an SELinux label, whose categories are separated by
// commas. They come quoted from the kubelet, as mount(8) wants them.
func securityLabel(option string) bool {
	name, _, pair := strings.Cut(option, "=")
	switch name {
	case "context", "fscontext", "defcontext", "rootcontext":
		return pair
	}
	return false
}

// valueOf returns the value as the kernel takes it.
func valueOf(option, value string) string {
	if quoted := len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"'; quoted && securityLabel(option) {
		return value[1 : len(value)-1]
	}
	return value
}

// maxOption is the longest name or value that fsconfig(2) takes, in bytes.
const maxOption = 255
