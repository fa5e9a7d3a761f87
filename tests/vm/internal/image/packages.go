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

// wanted returns the packages that tests need. It includes the essential packages, because the packages are resolved as
// if none were installed, and Debian's packages do not declare dependencies on essential ones.
func wanted() []string {
	return []string{
		"linux-image-cloud-amd64",
		"bash", "coreutils", "dash", "diffutils", "findutils", "grep", "hostname", "libc-bin", "mawk", "sed", "tar",
		"busybox-static", "iproute2", "iptables", "kmod", "mount", "nftables", "procps", "util-linux",
		"btrfs-progs", "e2fsprogs", "lvm2", "xfsprogs",
		"nfs-common", "nfs-kernel-server", "rpcbind",
	}
}

// needless reports whether a dependency of the wanted packages is left out. These packages serve the installation of
// packages, or scripts that no test runs, and make up two fifths of the total.
func needless(name string) bool {
	return regexp.MustCompile(
		`^(adduser|debconf|dpkg|gcc-[0-9]+-base|init-system-helpers|initramfs-tools.*|klibc-utils|libdb5.*|` +
			`libfile-find-rule-perl|libgdbm.*|libicu.*|libklibc|libnumber-compare-perl|libperl.*|libpython.*|libtext-glob-perl|` +
			`linux-base|linux-image-cloud-amd64|lsb-base|media-types|perl.*|python3.*|sensible-utils|udev|ucf|usrmerge)$`).MatchString(name)
}

// Package is a package to unpack.
type Package struct{ Name, Version string }

// String returns the package in the form of apt-get's arguments.
func (p Package) String() string { return p.Name + "=" + p.Version }

// resolve asks apt-get for the wanted packages and all their dependencies. The folder is for temporary files.
func resolve(ctx context.Context, dir string) ([]Package, error) {
	status := filepath.Join(dir, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return nil, err
	}
	// With an empty status file, no package counts as installed. The lock is only for processes that install.
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

// parse parses a line of apt-get's --print-uris: 'URI' NAME_VERSION_ARCHITECTURE.deb SIZE HASH. In the version, a colon
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

// download downloads the packages into the folder. apt-get verifies them against the hashes in its signed lists.
func download(ctx context.Context, dir string, packages []Package) error {
	args := []string{"-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=5", "download"}
	for _, p := range packages {
		args = append(args, p.String())
	}
	_, err := command(ctx, dir, "apt-get", args...).Output()
	return explain(err)
}

// update updates the package lists, which a fresh machine lacks or has in an old version. It fails if a list is
// missing.
func update(ctx context.Context) error {
	args := []string{"-qq", "-o", "Acquire::Retries=5", "-o", "APT::Update::Error-Mode=any", "update"}
	_, err := command(ctx, "/", "apt-get", args...).Output()
	return explain(err)
}

// command returns a command in a folder, with English messages.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
		"PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	return cmd
}

// explain adds the first lines of a command's error output: apt-get repeats the same error for each package.
func explain(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
		return fmt.Errorf("%w: %s", err, strings.Join(lines[:min(3, len(lines))], "; "))
	}
	return err
}
