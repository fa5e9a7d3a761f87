package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/node/ownership"
)

func small(t *testing.T, filesystem string) options {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounts and loop devices need root")
	}
	opts, err := parseOptions([]string{"-files", "3000", "-filesystems", filesystem, "-dir", t.TempDir()}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

// The run itself compares the methods' results.
func TestMethodsAgree(t *testing.T) {
	for _, fs := range []string{"ext4", "xfs"} {
		opts := small(t, fs)
		var out bytes.Buffer
		if err := run(t.Context(), opts, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{fs + ", wide", fs + ", flat", "careful", "exclusive", "OnRootMismatch"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the report lacks %q:\n%s", want, out.String())
			}
		}
		wantEmpty(t, opts.dir)
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A method with a result that differs from the kubelet's is detected.
func TestDifferenceIsFound(t *testing.T) {
	opts := small(t, "ext4")
	space, err := newWorkspace(t.Context(), opts.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := space.close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{space: space, opts: opts, fs: "ext4", shape: wide, log: io.Discard, methods: []method{methods()[0], {
		"read-only", ours(ownership.Request{ReadOnly: true}), true,
	}}}
	if err := b.run(t.Context()); err == nil || !strings.Contains(err.Error(), "differs from the kubelet's") {
		t.Errorf("a method with other permissions gave %v", err)
	}
}

// A run removes the leftovers of a killed run, but not the files of a running one.
func TestStaleWorkspaces(t *testing.T) {
	opts := small(t, "ext4")
	dead, err := newWorkspace(t.Context(), opts.dir)
	if err != nil {
		t.Fatal(err)
	}
	image := dead.image("x")
	if err := dead.format(t.Context(), "ext4", image, 10); err != nil {
		t.Fatal(err)
	}
	if err := dead.mount(t.Context(), "ext4", image); err != nil {
		t.Fatal(err)
	}
	alive, err := newWorkspace(context.Background(), opts.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dead.root(), "lost+found")); err != nil {
		t.Errorf("a living run's mount was taken away: %v", err)
	}
	if err := dead.lock.Close(); err != nil { // as the kernel does when a process dies
		t.Fatal(err)
	}
	next, err := newWorkspace(t.Context(), opts.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.dir); !os.IsNotExist(err) {
		t.Errorf("a dead run's workspace is still there: %v", err)
	}
	for _, w := range []*workspace{alive, next} {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}
	wantEmpty(t, opts.dir)
}

func TestOptions(t *testing.T) {
	for _, args := range [][]string{{"-files", "0"}, {"-rounds", "0"}, {"-filesystems", "fat"}, {"-shapes", "round"},
		{"stray"}, {"-unknown"}} {
		if _, err := parseOptions(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
