package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// touched names the long steps that belong to the folders of a change: what differs from the commit given, or from the one before.
func touched(ctx context.Context, out io.Writer, args []string) error {
	base := "HEAD~1"
	if len(args) > 0 {
		base = args[0]
	}
	text, err := exec.CommandContext(ctx, "git", "diff", "--name-only", base).Output()
	if err != nil {
		return fmt.Errorf("cannot list what has changed since %s: %w", base, err)
	}
	steps := stepsFor(strings.Fields(string(text)))
	if len(steps) == 0 {
		fmt.Fprintln(out, "nothing but the gate belongs to this change")
		return nil
	}
	fmt.Fprintf(out, ".ci/run %s\n", strings.Join(steps, " "))
	return nil
}

func stepsFor(files []string) (names []string) {
	for _, s := range long() {
		if concerns(s, files) {
			names = append(names, "long-"+s.name)
		}
	}
	return names
}

func concerns(s step, files []string) bool {
	for _, folder := range strings.Fields(s.folders) {
		for _, file := range files {
			if file == folder || strings.HasPrefix(file, folder+"/") {
				return true
			}
		}
	}
	return false
}
