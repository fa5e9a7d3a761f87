package export

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// Kernel mounts with the kernel's NFS client.
type Kernel struct{}

// lag is a little more than the actimeo of private.
const lag = 1100 * time.Millisecond

// private returns the options of the controller's mounts. Every call ends by itself, about twenty seconds after the
// server stops answering, with ETIMEDOUT (softerr). Names that another controller creates are visible at once
// (lookupcache), and its changes within a second. A new mount does not share the kernel's cache of the previous one,
// such as that root may not write (nosharecache). No file is executed or opened as a device there, no symlink is
// followed, and no access time is written.
func private() []string {
	return []string{"softerr", "timeo=30", "retrans=2", "lookupcache=positive", "actimeo=1", "nosharecache"}
}

// Open mounts the root of the export without attaching it.
func (Kernel) Open(ctx context.Context, address Address) (*Root, error) {
	ip, err := resolve(ctx, address.Server)
	if err != nil {
		return nil, err
	}
	versions := Versions()
	if address.Version != "" {
		versions = []string{address.Version}
	}
	var failures []error
	for _, version := range versions {
		root, err := open(address, ip, version)
		if err == nil {
			return root, nil
		}
		failures = append(failures, err)
		if !backends.Is(err, backends.Unsupported) || ctx.Err() != nil {
			return nil, backends.Errorf(backends.KindOf(err), "%w", errors.Join(failures...))
		}
	}
	// A server that is being set up may have the version later.
	return nil, backends.Errorf(backends.Unavailable, "%w", errors.Join(failures...))
}

// Source returns an export for the node's pipeline to mount.
func (Kernel) Source(ctx context.Context, address Address, dir string) (backends.Source, error) {
	ip, err := resolve(ctx, address.Server)
	if err != nil {
		return nil, err
	}
	return backends.Export{FSType: fsType(address.Version), Source: address.Below(dir),
		Options: needed(address.Version, ip)}, nil
}

// fsType returns the kernel's name of the filesystem.
func fsType(version string) string {
	if version == "3" {
		return "nfs"
	}
	return "nfs4"
}

// needed returns the options that mount.nfs would add, because the kernel resolves no names and negotiates no version.
// It omits clientaddr, at which a server calls back clients of 4.0: those cannot decline a delegation, and a client
// that cannot be called back gets none.
func needed(version, ip string) []string {
	options := []string{"vers=" + version, "addr=" + ip, "proto=" + proto(ip)}
	if version == "3" {
		options = append(options, "mountaddr="+ip, "mountproto="+proto(ip))
	}
	return options
}

func proto(ip string) string {
	if strings.Contains(ip, ":") {
		return "tcp6"
	}
	return "tcp"
}

// resolve returns an address of a host. Kinds: Unavailable.
func resolve(ctx context.Context, server string) (string, error) {
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", server)
	if err != nil {
		return "", backends.Errorf(backends.Unavailable, "the server %s cannot be found: %w", server, err)
	}
	for _, a := range addresses {
		if a.Unmap().Is4() {
			return a.Unmap().String(), nil
		}
	}
	return addresses[0].String(), nil
}

// SameServer compares the names, and the addresses that they resolve to.
func (Kernel) SameServer(ctx context.Context, one, other string) bool {
	if strings.TrimSuffix(one, ".") == strings.TrimSuffix(other, ".") {
		return true
	}
	these, those := addresses(ctx, one), addresses(ctx, other)
	return slices.ContainsFunc(these, func(a netip.Addr) bool { return slices.Contains(those, a) })
}

// addresses returns the addresses of a server, normalized; none if its name cannot be resolved.
func addresses(ctx context.Context, server string) (found []netip.Addr) {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", server)
	if err != nil {
		return nil
	}
	for _, a := range all {
		found = append(found, a.Unmap())
	}
	return found
}

func open(address Address, ip, version string) (*Root, error) {
	options := append(needed(version, ip), private()...)
	if address.Connection != "" {
		options = append(options, strings.Split(address.Connection, ",")...)
	}
	if version == "3" {
		options = append(options, "nolock") // The driver takes no locks, and would have to start rpc.statd for them.
	}
	fd, err := mount(fsType(version), address.Below(""), options)
	if err != nil {
		return nil, failure(address, version, err)
	}
	kept := os.NewFile(uintptr(fd), address.String())
	dir, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(failure(address, version, err), kept.Close())
	}
	// With O_DIRECT the client wants no delegation of a file (NFS4_SHARE_WANT_NO_DELEG, RFC 8881 section 18.16.3). If pods
	// mount the share with the same client as the controller, whose mounts share nothing with theirs, the server would not
	// recall a delegation when a pod writes, and the controller would keep seeing the old file.
	return &Root{Dir: os.NewFile(uintptr(dir), address.String()), Mount: kept, Version: version, Lag: lag, Direct: true,
		Filesystem: filesystemOf(dir)}, nil
}

// mount creates a mount without attaching it (fsopen(2), fsmount(2)).
func mount(kind, source string, options []string) (int, error) {
	fsfd, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fsfd) }() // a context that is used up
	if err := unix.FsconfigSetString(fsfd, "source", source); err != nil {
		return -1, err
	}
	for _, option := range options {
		if name, value, pair := strings.Cut(option, "="); pair {
			err = unix.FsconfigSetString(fsfd, name, value)
		} else {
			err = unix.FsconfigSetFlag(fsfd, name)
		}
		if err != nil {
			return -1, &os.SyscallError{Syscall: "fsconfig " + secret.Option(option), Err: err}
		}
	}
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return -1, err
	}
	const attributes = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC |
		unix.MOUNT_ATTR_NOATIME | unix.MOUNT_ATTR_NOSYMFOLLOW
	return unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, attributes)
}

// failure describes why a mount failed. Kinds: Denied, Unsupported for a version that one side does not have, and else
// Unavailable: a server that is being set up may answer anything.
func failure(address Address, version string, err error) error {
	kind := backends.Unavailable
	switch {
	case errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENODEV):
		kind = backends.Unsupported
	case errors.Is(err, unix.EPERM):
		kind = backends.Denied
	}
	why := ""
	switch {
	case errors.Is(err, unix.EACCES):
		why = ": is this node allowed in the server's exports?"
	case errors.Is(err, unix.EPERM):
		why = ": may this process mount (CAP_SYS_ADMIN), and is it in the node's network, from whose ports below 1024 the " +
			"server lets clients in (secure)?"
	case errors.Is(err, unix.ENOENT):
		why = ": the server exports no such path"
	case errors.Is(err, unix.ENODEV):
		why = ": this kernel has no NFS client; load the module nfs"
	}
	return backends.Errorf(kind, "mounting %s with NFS %s: %w%s", address, version, err, why)
}
