package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	deeds := map[string]func() error{
		"exit":   func() error { return fmt.Errorf("this is what was asked for") },
		"kill":   func() error { return unix.Kill(os.Getpid(), unix.SIGKILL) },
		"panic":  func() error { return os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0) },
		"freeze": func() error { return unix.Kill(os.Getppid(), unix.SIGSTOP) },
		"leave":  leave,
		"talk":   talk,
		"sleep":  func() error { <-time.After(time.Hour); return nil },
	}
	deed := deeds[strings.Join(os.Args[1:], " ")]
	if deed == nil {
		fmt.Fprintln(os.Stderr, "culprit: what is to go wrong?")
		os.Exit(2)
	}
	if err := deed(); err != nil {
		fmt.Fprintln(os.Stderr, "culprit:", err)
		os.Exit(1)
	}
}

// leave leaves a process behind that keeps the output open, and is in another process group.
func leave() error {
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", "sleep")
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// talk prints more than any buffer holds, including all characters that JSON and terminals treat specially.
func talk() error {
	for line := range 5000 {
		if _, err := fmt.Printf("%05d \"\\\t\r\x16\x1b é %s\n", line, strings.Repeat("x", 20)); err != nil {
			return err
		}
	}
	return nil
}
