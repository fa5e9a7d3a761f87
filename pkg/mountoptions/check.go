package mountoptions

import (
	"strings"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// Ignored reports whether an option has a meaning only for the tools around fstab(5), and is harmless.
func Ignored(option string) bool {
	switch option {
	case "defaults", "_netdev", "nofail":
		return true
	}
	return false
}

// refusal returns why an option is never allowed, whatever the filesystem; empty for other options. The refused options
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

// Check checks the form of mount options, each one element of the list, and refuses those that are never allowed.
// Whether the filesystem accepts the others is known only when it is mounted. Kinds: Invalid, naming the option.
func Check(options []string) error {
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
		return failure.Errorf(failure.Invalid, "a mount option is empty: leave it out")
	case strings.HasPrefix(option, "="):
		return failure.Errorf(failure.Invalid, "mount option %q has no name", shown)
	case strings.ContainsAny(option, "\x00\n"):
		return failure.Errorf(failure.Invalid, "mount option %q contains a NUL byte or a line break", shown)
	case strings.ContainsRune(option, ',') && !SecurityLabel(option):
		return failure.Errorf(failure.Invalid, "mount option %q contains a comma: give each option as an entry of its own",
			shown)
	case len(option) > maxOption:
		return failure.Errorf(failure.Invalid, "mount option %.32q... is %d bytes long: at most %d are allowed", shown,
			len(option), maxOption)
	}
	if why := refusal(option); why != "" {
		return failure.Errorf(failure.Invalid, "mount option %q is not allowed: %s", shown, why)
	}
	return nil
}

// SecurityLabel reports whether an option carries an SELinux label, whose categories are separated by commas. The
// kubelet passes it quoted, as mount(8) expects.
func SecurityLabel(option string) bool {
	name, _, pair := strings.Cut(option, "=")
	switch name {
	case "context", "fscontext", "defcontext", "rootcontext":
		return pair
	}
	return false
}

// maxOption is the maximum length in bytes of a name or value for fsconfig(2).
const maxOption = 255
