package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wanted are the packages that tests need. Those that every Debian has are named too: the packages are resolved as
// if none were installed, and Debian's packages do not name what is essential.
func wanted() []string {
	return []string{
		"linux-image-cloud-amd64",
		"bash", "coreutils", "dash", "diffutils", "findutils", "grep", "hostname", "libc-bin", "mawk", "sed", "tar",
		"busybox-static", "iproute2", "iptables", "kmod", "mount", "nftables", "procps", "util-linux",
		"btrfs-progs", "e2fsprogs", "lvm2", "xfsprogs",
		"nfs-common", "nfs-kernel-server", "rpcbind",
	}
}

// needless tells which of the packages that those wanted depend on are left out. They serve the installation of
// packages, or scripts that no test runs, and are two fifths of all.
func needless(name string) bool {
	return regexp.MustCompile(
		`^(adduser|debconf|dpkg|gcc-[0-9]+-base|init-system-helpers|initramfs-tools.*|klibc-utils|libdb5.*|` +
			`libfile-find-rule-perl|libgdbm.*|libicu.*|libklibc|libnumber-compare-perl|libperl.*|libpython.*|libtext-glob-perl|` +
			`linux-base|linux-image-cloud-amd64|lsb-base|media-types|perl.*|python3.*|sensible-utils|udev|ucf|usrmerge)$`).MatchString(name)
}

// Package is one to unpack.
type Package struct{ Name, Version string }

// String is how apt-get is asked for the package.
func (p Package) String() string { return p.Name + "=" + p.Version }

// resolve asks apt-get for the packages wanted and all that they depend on. The folder is for temporary files.
func resolve(ctx context.Context, dir string) ([]Package, error) {
	status := filepath.Join(dir, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return nil, err
	}
	// Without a list of what is installed, all is to be installed; the lock is for those who install.
	args := append([]string{"-qq", "-o", "Dir::State::status=" + status, "-o", "Debug::NoLocking=1",
		"--no-install-recommends", "--print-uris", "install"}, wanted()...)
	text, err := command(ctx, dir, "apt-get", args...).Output()
	if err != nil {
		return nil, explain(err)
	}
	var packages []Package
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		p, err := parse(line)
		if err != nil {
			return nil, err
		}
		if !needless(p.Name) {
			packages = append(packages, p)
		}
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return packages, nil
}

// parse reads a line of apt-get's --print-uris: 'URI' NAME_VERSION_ARCHITECTURE.deb SIZE HASH. In the version, a colon
// is written as %3a.
func parse(line string) (Package, error) {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return Package{}, fmt.Errorf("apt-get printed %q, which is not a package", line)
	}
	parts := strings.Split(strings.TrimSuffix(fields[1], ".deb"), "_")
	if len(parts) != 3 {
		return Package{}, fmt.Errorf("apt-get printed the file %q, which is not NAME_VERSION_ARCHITECTURE.deb", fields[1])
	}
	return Package{Name: parts[0], Version: strings.ReplaceAll(parts[1], "%3a", ":")}, nil
}

// download downloads the packages into the folder; apt-get compares them with the hashes of its signed lists.
func download(ctx context.Context, dir string, packages []Package) error {
	args := []string{"-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=5", "download"}
	for _, p := range packages {
		args = append(args, p.String())
	}
	_, err := command(ctx, dir, "apt-get", args...).Output()
	return explain(err)
}

// update fetches the lists of packages: a fresh machine has none, or stale ones. It fails where it misses one.
func update(ctx context.Context) error {
	args := []string{"-qq", "-o", "Acquire::Retries=5", "-o", "APT::Update::Error-Mode=any", "update"}
	_, err := command(ctx, "/", "apt-get", args...).Output()
	return explain(err)
}

// command is a command in a folder that speaks English.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
		"PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	return cmd
}

// explain adds what a command said first: apt-get says the same of each package.
func explain(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
		return fmt.Errorf("%w: %s", err, strings.Join(lines[:min(3, len(lines))], "; "))
	}
	return err
}
