package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// touched names the long steps that belong to the folders of a change: the difference to the given commit, or to the
// previous one.
func touched(ctx context.Context, out io.Writer, args []string) error {
	base := "HEAD~1"
	if len(args) > 0 {
		base = args[0]
	}
	files, err := changedFiles(ctx, base)
	if err != nil {
		return err
	}
	of, err := imports(ctx)
	if err != nil {
		return err
	}
	steps := stepsFor(files, of)
	if len(steps) == 0 {
		fmt.Fprintln(out, "nothing but the gate belongs to this change")
		return nil
	}
	fmt.Fprintf(out, ".ci/run %s\n", strings.Join(steps, " "))
	return nil
}

// changedFiles also lists files that git does not track yet, and both ends of a move.
func changedFiles(ctx context.Context, base string) (files []string, err error) {
	for _, args := range [][]string{
		{"diff", "--name-only", "--no-renames", "-z", base},
		{"ls-files", "--others", "--exclude-standard", "-z"},
	} {
		git := exec.CommandContext(ctx, "git", args...)
		git.Stderr = os.Stderr
		text, err := git.Output()
		if err != nil {
			return nil, fmt.Errorf("cannot list what has changed since %s: %w", base, err)
		}
		files = append(files, strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 })...)
	}
	return files, nil
}

func stepsFor(files []string, of graph) (names []string) {
	for _, s := range long() {
		if concerns(s, files, of) {
			names = append(names, "long-"+s.name)
		}
	}
	return names
}

func concerns(s step, files []string, of graph) bool {
	folders := strings.Fields(s.folders + " go.mod go.sum") // another dependency concerns all of them
	for _, pattern := range strings.Fields(s.packages) {
		if below, all := strings.CutSuffix(pattern, "/..."); all {
			folders = append(folders, below) // also files of no package
		}
	}
	linked := of.linked(s)
	for _, file := range files {
		if linked[of.home(file)] || slices.ContainsFunc(folders, func(f string) bool { return within(file, f) }) {
			return true
		}
	}
	return false
}

func within(file, folder string) bool { return file == folder || strings.HasPrefix(file, folder+"/") }
