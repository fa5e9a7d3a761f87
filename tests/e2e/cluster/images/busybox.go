package images

import (
	"context"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// busyboxPath is the path of the program in Debian's busybox-static.
const busyboxPath = "/bin/busybox"

// The users and groups of an image.
const (
	passwd, group = "etc/passwd", "etc/group"
	someUsers     = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
	someGroups    = "root:x:0:\nnogroup:x:65534:\n"
)

// busybox returns the files of an image with a shell and the usual tools.
func busybox(ctx context.Context) ([]File, error) {
	if err := static(busyboxPath); err != nil {
		return nil, fmt.Errorf("%w: install Debian's busybox-static (hack/deps cluster)", err)
	}
	applets, err := exec.CommandContext(ctx, busyboxPath, "--list-full").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --list-full: %w", busyboxPath, err)
	}
	files := []File{
		{Path: "tmp", Mode: 0o1777},
		{Path: "var/tmp", Mode: 0o1777},
		{Path: "root", Mode: 0o700},
		{Path: passwd, Mode: 0o644, Text: someUsers},
		{Path: group, Mode: 0o644, Text: someGroups},
		{Path: "usr/share/nginx/html/index.html", Mode: 0o644, Text: "<h1>It works</h1>\n"},
		{Path: "bin/busybox", Mode: 0o755, Source: busyboxPath},
	}
	for _, applet := range strings.Fields(string(applets)) {
		if applet = strings.TrimPrefix(applet, "/"); applet == "bin/busybox" || filepath.Dir(applet) == "." {
			continue
		}
		files = append(files, File{Path: applet, Link: "/bin/busybox"})
	}
	return files, nil
}

// static returns an error if the program needs shared libraries.
func static(program string) error {
	file, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not linked statically", program)
		}
	}
	return nil
}
