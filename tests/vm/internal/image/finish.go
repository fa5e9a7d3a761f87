package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// diskSize leaves room for the files of tests below /srv and /var. The file is sparse.
const diskSize = "8G"

// takeKernel moves the kernel out of the root filesystem.
func takeKernel(root, to string) error {
	kernels, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	if err != nil {
		return err
	}
	if len(kernels) != 1 {
		return fmt.Errorf("want one kernel in %s/boot and found %v", root, kernels)
	}
	return errors.Join(os.Rename(kernels[0], to), os.RemoveAll(filepath.Join(root, "boot")))
}

// links returns the links that Debian creates when it installs packages.
func links() map[string]string {
	list := map[string]string{"usr/bin/sh": "dash", "usr/bin/awk": "mawk", "etc/mtab": "../proc/self/mounts",
		"var/run": "/run", "var/lock": "/run/lock"}
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables"} {
		list["usr/sbin/"+name] = "xtables-nft-multi"
	}
	return list
}

// files returns the files that Debian creates when it installs packages, or that an administrator writes.
func files() map[string]string {
	return map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/bash\n_rpc:x:100:65534::/run/rpcbind:/usr/sbin/nologin\n" +
			"statd:x:101:65534::/var/lib/nfs:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"etc/group":         "root:x:0:\ndisk:x:6:\nnogroup:x:65534:\n",
		"etc/hosts":         "127.0.0.1 localhost guest\n10.0.2.2 host\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\nrpc: files\n",
		"etc/exports":       "",
		"var/lib/nfs/etab":  "",
		"var/lib/nfs/rmtab": "",
		"var/lib/nfs/state": "",
		"var/lib/nfs/xtab":  "",
	}
}

// folders returns the mount points, and the folders that daemons need. Tests put their files into /tmp on the disk, so
// that, as on a real machine, loop devices are backed by an ext4.
func folders() []string {
	return []string{"dev", "proc", "sys", "run", "tmp", "share", "srv", "mnt", "root",
		"var/lib/nfs/sm", "var/lib/nfs/sm.bak", "var/lib/nfs/rpc_pipefs", "var/lib/nfs/v4recovery", "var/lib/nfs/nfsdcltrack"}
}

// finish does the necessary part of the packages' scripts.
func finish(ctx context.Context, root string) error {
	var problems []error
	for _, folder := range folders() {
		problems = append(problems, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	for name, text := range files() {
		path := filepath.Join(root, name)
		problems = append(problems, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	for name, target := range links() {
		path := filepath.Join(root, name)
		problems = append(problems, os.RemoveAll(path), os.Symlink(target, path))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	versions, err := os.ReadDir(filepath.Join(root, "lib/modules"))
	if err != nil {
		return err
	}
	if len(versions) != 1 {
		return fmt.Errorf("want the modules of one kernel and found those of %v", versions)
	}
	return errors.Join(inRoot(ctx, root, "/usr/sbin/depmod", "-a", versions[0].Name()),
		inRoot(ctx, root, "/usr/sbin/ldconfig"))
}

// inRoot runs a program of the root filesystem, in that filesystem.
func inRoot(ctx context.Context, root string, argv ...string) error {
	_, err := command(ctx, "/", "chroot", append([]string{root}, argv...)...).Output()
	return explain(err)
}

// makeDisk creates a filesystem with the root's files. It is never written to, and needs no journal.
func makeDisk(ctx context.Context, root, path string) error {
	_, err := command(ctx, "/", "mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-L", "root", "-d", root, path,
		diskSize).Output()
	return explain(err)
}
