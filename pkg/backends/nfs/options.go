package nfs

import (
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// allowed returns the options of the kernel's NFS client that a class or a PersistentVolume may set. All other options
// would say what is mounted, from where, or as whom (addr, port, clientaddr, mounthost), or are for other tools.
func allowed() []string {
	return []string{
		"hard", "soft", "softerr", "softreval", "nosoftreval", "timeo", "retrans", "rsize", "wsize", "bsize", "nconnect",
		"max_connect", "trunkdiscovery", "notrunkdiscovery",
		"ac", "noac", "acregmin", "acregmax", "acdirmin", "acdirmax", "actimeo", "lookupcache", "cto", "nocto",
		"lock", "nolock", "local_lock", "sharecache", "nosharecache", "resvport", "noresvport", "rdirplus", "nordirplus",
		"sec", "acl", "noacl", "migration", "nomigration", "fsc", "nofsc", "write", "xprtsec", "proto", "tcp", "udp", "intr",
		"nointr", "fg", "bg", "retry",
	}
}

// genericOptions returns the options that the node's pipeline understands for every filesystem.
func genericOptions() []string {
	return []string{
		"ro", "rw", "suid", "nosuid", "dev", "nodev", "exec", "noexec", "symfollow", "nosymfollow", "sync", "async",
		"dirsync",
		"atime", "noatime", "relatime", "norelatime", "strictatime", "nostrictatime", "diratime", "nodiratime",
		"defaults", "_netdev", "nofail", "context", "fscontext", "defcontext", "rootcontext",
	}
}

// checkOptions refuses mount options that make no sense for NFS or lead elsewhere, and returns the NFS version that
// they request. Kinds: Invalid.
func checkOptions(options []string) (version string, err error) {
	for _, option := range options {
		name, value, pair := strings.Cut(option, "=")
		asked := ""
		switch {
		case (name == "vers" || name == "nfsvers") && pair:
			asked = value
		case !pair && len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789.") == "":
			asked = name[1:]
		case !slices.Contains(allowed(), name) && !slices.Contains(genericOptions(), name):
			return "", backends.Errorf(backends.Invalid, "mount option %q is not allowed for NFS: possible are %s",
				secret.Option(option), strings.Join(allowed(), ", "))
		default:
			continue
		}
		if !slices.Contains([]string{"3", "4", "4.0", "4.1", "4.2"}, asked) {
			return "", backends.Errorf(backends.Invalid,
				"mount option %q asks for a version of NFS that is not known: use 3, 4, 4.0, 4.1 or 4.2", secret.Option(option))
		}
		if version != "" && version != asked {
			return "", backends.Errorf(backends.Invalid, "the mount options ask for NFS %s and %s: name one", version, asked)
		}
		version = asked
	}
	return version, nil
}

// connectionOptions returns the options of a list that concern the connection to the server. All mounts of the server
// on a node share it. The driver's own mount comes first, so it must request these options too.
func connectionOptions(options []string) string {
	of := []string{"nconnect", "max_connect", "resvport", "noresvport"}
	return strings.Join(slices.DeleteFunc(slices.Clone(options), func(option string) bool {
		name, _, _ := strings.Cut(option, "=")
		return !slices.Contains(of, name)
	}), ",")
}

// alone requests a separate superblock for options that the kernel does not compare. Otherwise the kernel would share
// the superblock of another volume of the share, with the values of that volume.
func alone(options []string) []string {
	never := []string{"timeo", "retrans", "bsize", "resvport", "noresvport"}
	for _, option := range options {
		if name, _, _ := strings.Cut(option, "="); slices.Contains(never, name) {
			return []string{"nosharecache"} // The class's own options come later, and the last one counts.
		}
	}
	return nil
}
