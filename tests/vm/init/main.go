package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// disk is the guest's root filesystem: the first NVMe disk.
const disk = "/dev/nvme0n1"

// diskLimit is the limit for the disk to appear. It is shorter than the silence after which a guest counts as hanging
// (qemu.DefaultSilence), so that the cause is reported.
const diskLimit = time.Minute

// workArgument makes this program do the work instead of being process 1.
const workArgument = "work"

func main() {
	if len(os.Args) > 1 && os.Args[1] == workArgument {
		work()
		return
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "init: this is the first process of a guest: use tests/vm/run")
		os.Exit(2)
	}
	if err := begin(); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Fprintln(os.Stderr, "init: power off:", err)
	}
}

// begin moves to the disk and starts the work.
func begin() error {
	if err := mounts(early()); err != nil {
		return err
	}
	if err := moveToDisk(); err != nil {
		return err
	}
	// The link refers to the program itself, wherever its file was.
	process, err := os.StartProcess("/proc/self/exe", []string{"init", workArgument}, &os.ProcAttr{
		Env: environment(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return err
	}
	return reap(process.Pid)
}

func environment() []string {
	return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}
}

// moveToDisk makes the disk the root of this process and of the kernel's threads, which share process 1's root. The
// kernel then finds modprobe there.
func moveToDisk() error {
	const root = "/root"
	if err := mountDisk(root); err != nil {
		return err
	}
	for _, path := range []string{"/dev", "/proc"} {
		if err := unix.Mount(path, filepath.Join(root, path), "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", path, err)
		}
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	return os.Chdir("/")
}

// mountDisk waits for the disk, which the kernel detects asynchronously.
func mountDisk(path string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	for {
		err := unix.Mount(disk, path, "ext4", 0, "")
		if err == nil || time.Since(begun) > diskLimit {
			return wrap("mount "+disk, err)
		}
		<-tick.C
	}
}

// reap reaps all children of process 1 until the process with the ID has ended.
func reap(pid int) error {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		case ended == pid && status != 0:
			return fmt.Errorf("the process that works ended with status %#x", int(status))
		case ended == pid:
			return nil
		}
	}
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// run runs a program. Its output is part of the error.
func run(argv ...string) error {
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", argv, err, text)
	}
	return nil
}
