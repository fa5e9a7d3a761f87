package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
)

// small returns options for a run of a few seconds.
func small(t *testing.T, binary string) options {
	t.Helper()
	opts, err := parseOptions([]string{"-binary", binary, "-volumes", "8", "-inflight", "1,4", "-dir", shortDir(t)},
		io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

func testBinary(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// shortDir creates a directory for the test: t.TempDir contains the test's name, which is too long for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bench-") //nolint:usetesting // t.TempDir is too long, see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := sweep(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// mustBeEmpty fails the test if anything is left in the directory, or mounted below it.
func mustBeEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Errorf("%s is left in %s", entry.Name(), dir)
	}
	if mounts, err := unmountBelow(dir); len(mounts) > 0 || err != nil {
		t.Errorf("left mounted: %q, %v", mounts, err)
	}
	// A detached loop device is visible until every process that inspects it has closed it.
	for begun := time.Now(); time.Since(begun) < 2*time.Minute; <-time.After(10 * time.Millisecond) {
		if loops, err := attachedBelow(dir); len(loops) == 0 && err == nil {
			return
		}
	}
	loops, err := detachBelow(dir)
	t.Errorf("left attached: %q, %v", loops, err)
}

func TestRunMeasuresEverything(t *testing.T) {
	needRoot(t)
	opts := small(t, testBinary(t))
	var out bytes.Buffer
	if err := run(t.Context(), opts, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	mustBeEmpty(t, opts.dir)
	wanted := []string{"lifecycles/s", "CPU ms/volume", "Pool directory, 4 in flight", "Pool image, 1 in flight",
		"measured/floor = ", "NodeStageVolume and NodePublishVolume take", "handled/floor = "}
	for _, name := range rpcNames() {
		wanted = append(wanted, name)
	}
	for _, text := range wanted {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the report lacks %q", text)
		}
	}
	if strings.Contains(out.String(), "handled/floor = 0.00") {
		t.Error("the driver says that it spent no time on what it did")
	}
	t.Log("\n" + out.String())
}

func TestRunStopsWhenTheDriverDoesNotStart(t *testing.T) {
	needRoot(t)
	for binary, want := range map[string]string{"/bin/false": "it ended (exit status 1)", "/nonexistent": "no such file"} {
		opts := small(t, binary)
		_, _, err := load(t.Context(), opts, t.TempDir(), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %s: error is %v, want %s", binary, err, want)
		}
	}
}

// whenMounted calls f once a path below dir that contains part is mounted.
func whenMounted(ctx context.Context, t *testing.T, dir, part string, f func()) {
	for ctx.Err() == nil {
		mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
		if err != nil {
			t.Error(err)
		}
		inPart := func(m *mountinfo.Info) bool { return strings.Contains(m.Mountpoint, part) }
		if err != nil || slices.ContainsFunc(mounts, inPart) {
			f()
			return
		}
	}
}

func TestRunCleansUpWhenInterrupted(t *testing.T) {
	needRoot(t)
	for name, c := range map[string]struct{ pool, mounted string }{
		"floor":     {imagePool, "/floor/"},
		"directory": {directoryPool, "/pods/"},
		"image":     {imagePool, "/pods/"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := small(t, testBinary(t))
			opts.volumes, opts.inflight, opts.pools = 200, []int{4}, []string{c.pool}
			interrupted := errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(t.Context())
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				whenMounted(ctx, t, opts.dir, c.mounted, func() { cancel(interrupted) })
			}()
			if err := run(ctx, opts, io.Discard, io.Discard); !errors.Is(err, interrupted) {
				t.Errorf("error is %v, want that the run was interrupted", err)
			}
			cancel(nil)
			<-watched
			mustBeEmpty(t, opts.dir)
		})
	}
}

func TestRunFailsOnAnyRPCError(t *testing.T) {
	needRoot(t)
	opts := small(t, testBinary(t))
	opts.fsType = "ext5"
	dir := shortDir(t)
	_, _, err := load(t.Context(), opts, dir, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "of volume bench-image-1-0 failed") ||
		!strings.Contains(err.Error(), "ext5") {
		t.Errorf("error is %v, want one that names the RPC, the volume and the reason", err)
	}
}

func TestRemoveFoldersRefusesWhatIsLeft(t *testing.T) {
	dir := t.TempDir()
	v := newVolume(client{}, options{}, directoryPool, "v", dir)
	if err := v.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(v.staging, "marker"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeFolders(dir, []*volume{v}); err == nil {
		t.Error("a file in a staging directory passes")
	}
	if err := os.Remove(filepath.Join(v.staging, "marker")); err != nil {
		t.Fatal(err)
	}
	if err := removeFolders(dir, []*volume{v}); err != nil {
		t.Error(err)
	}
}
