package hotplug

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/disks"
	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/vm/hotplug"
)

// TestFoundDisk plugs in a disk that a rule selects by its link. udev creates the link long after the kernel has
// reported the disk.
func TestFoundDisk(t *testing.T) {
	const links = "/dev/by-test" // rules may select links in it
	must(t, os.Mkdir(links, 0o755))
	t.Cleanup(func() {
		if err := os.RemoveAll(links); err != nil {
			t.Error(err)
		}
	})
	config, err := discovery.Parse([]byte("devices: [{paths: [" + links + "/*]}]"))
	must(t, err)
	dir := t.TempDir()
	engine, err := disks.Open(disks.Options{
		Config: config, StateDir: filepath.Join(dir, "state"), LinkPath: filepath.Join(dir, "links"),
		LinkDir: "/run/found-links", // in memory
		Rescan:  time.Hour, FirstPause: time.Second, LastPause: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	machine := connect(t)
	began := time.Now()
	plugged, err := machine.Plug(ctx, hotplug.Disk{Model: hotplug.NVMe, Serial: "vol0123456789abcdef0", Bytes: 64 * mib})
	must(t, err)
	link := filepath.Join(links, "nvme-one")
	<-time.After(300 * time.Millisecond) // Stimulus: udev takes its time.
	must(t, os.Symlink(plugged.Path, link))
	seen := found(ctx, t, engine,
		func(s report.State) bool { return len(s.Volumes) == 1 && s.Volumes[0].State == report.Available })
	t.Logf("%s was found %v after it was asked for", seen.Volumes[0].Device, time.Since(began).Round(time.Millisecond))
	must(t, plugged.Unplug(ctx))
	found(ctx, t, engine, func(s report.State) bool { return len(s.Volumes) == 0 })
}

// found waits for a state of the engine that satisfies is.
func found(ctx context.Context, t *testing.T, engine *disks.Engine, is func(report.State) bool) report.State {
	t.Helper()
	state := engine.State(ctx, "")
	for ctx.Err() == nil && !is(state) {
		state = engine.State(ctx, state.Revision)
	}
	if !is(state) {
		t.Fatalf("the disks are reported as %+v", state)
	}
	return state
}
