package node

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

// root gives this process, and all processes that it starts, the node's own root filesystem. Mounts in it propagate to
// containers that ask for them, and not outside the node.
func (n *self) root(store string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	root := n.layout.Node(n.name, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	steps := []func(root string) error{n.own, n.programs, n.kernel, n.etc}
	for _, step := range steps {
		if err := step(root); err != nil {
			return err
		}
	}
	for dir, flags := range map[string]uintptr{store: unix.MS_RDONLY, n.layout.Data(): 0} {
		if err := bind(dir, filepath.Join(root, dir), flags); err != nil {
			return err
		}
	}
	if err := pivot(root); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts with containers: %w", err)
	}
	return hideKernelSettings()
}

// own provides the folders that persist across restarts. /run is empty after each start, as on any machine.
func (n *self) own(root string) error {
	for _, dir := range []string{"run/lock", "root", "mnt", "opt", "home"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	for _, dir := range []string{"var", "tmp"} {
		source := n.layout.Node(n.name, dir)
		if err := os.MkdirAll(source, 0o755); err != nil {
			return err
		}
		if err := bind(source, filepath.Join(root, dir), 0); err != nil {
			return err
		}
	}
	for _, dir := range []string{"var/lib/kubelet", "var/lib/containerd", "var/log", "var/tmp"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := link("/run", filepath.Join(root, "var/run")); err != nil {
		return err
	}
	return errors.Join(os.Chmod(filepath.Join(root, "tmp"), 0o1777), os.Chmod(filepath.Join(root, "var/tmp"), 0o1777))
}

// programs provides the host's programs, read-only.
func (n *self) programs(root string) error {
	if err := bind("/usr", filepath.Join(root, "usr"), unix.MS_RDONLY); err != nil {
		return err
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		target, err := os.Readlink(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err == nil:
			err = link(target, filepath.Join(root, dir))
		default: // A separate folder, where /usr is not merged.
			err = bind(dir, filepath.Join(root, dir), unix.MS_RDONLY)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// kernel mounts the kernel's filesystems.
func (n *self) kernel(root string) error {
	for _, mount := range []struct{ kind, target string }{{"proc", "proc"}, {"sysfs", "sys"}} {
		target := filepath.Join(root, mount.target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(mount.kind, target, mount.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", mount.kind, err)
		}
	}
	if err := bind("/sys/fs/cgroup", filepath.Join(root, "sys/fs/cgroup"), unix.MS_REC); err != nil {
		return err
	}
	return bind("/dev", filepath.Join(root, "dev"), unix.MS_REC)
}

// etc provides the files that identify this node, and those that the host's programs need.
func (n *self) etc(root string) error {
	for _, path := range []string{"/etc/alternatives", "/etc/ld.so.cache"} {
		err := bind(path, filepath.Join(root, path), unix.MS_RDONLY)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	sum := sha256.Sum256([]byte(n.layout.Data() + "/" + n.name))
	hosts := "127.0.0.1 localhost\n"
	for number := 1; number <= n.nodes; number++ {
		hosts += layout.NodeAddress(number) + " " + layout.NodeName(number) + "\n"
	}
	for name, text := range map[string]string{
		"hostname":      n.name + "\n",
		"hosts":         hosts,
		"machine-id":    hex.EncodeToString(sum[:16]) + "\n",
		"resolv.conf":   "", // There is no name server, and no outside host to resolve.
		"nsswitch.conf": "hosts: files dns\n",
		"passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
		"group":         "root:x:0:\nnogroup:x:65534:\n",
	} {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
