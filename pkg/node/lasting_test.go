package node_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/tests/stall"
)

// slowTool replaces a tool by a program that notes each run, waits until it is told to continue, and then runs the
// tool.
type slowTool struct {
	*world
	path, down, runs string
}

func newSlowTool(w *world, name string) *slowTool {
	w.Helper()
	path, err := filepath.EvalSymlinks("/usr/sbin/" + name)
	w.must(err)
	text, err := os.ReadFile(path)
	w.must(err)
	s := &slowTool{world: w, path: path, down: w.path("down-" + name), runs: w.path("runs-" + name)}
	tool, script := w.path(name), w.path("slow-"+name)
	w.must(unix.Mkfifo(s.down, 0o600))
	w.must(os.WriteFile(tool, text, 0o700))
	w.must(os.WriteFile(script, []byte("#!/bin/sh\necho $$ >> "+s.runs+"\nread line < "+s.down+"\nexec "+tool+" \"$@\"\n"),
		0o700))
	w.bind(script, path)
	w.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) }) // already unmounted unless the test failed
	return s
}

// begun reports whether the tool was started.
func (s *slowTool) begun() bool { return len(s.started()) > 0 }

// impatient stages with a time that ends once the tool works, or at once if it already does.
func (s *slowTool) impatient(r node.StageRequest) error {
	s.Helper()
	stage := func(ctx context.Context) error { return s.service.Stage(ctx, r) }
	if s.begun() {
		return s.brief(stage)
	}
	err := s.until(s.begun, stage)
	if !s.begun() {
		s.Fatalf("the tool was not started: %v", err)
	}
	return err
}

// started returns the processes of the tool, which may have ended.
func (s *slowTool) started() (pids []int) {
	text, _ := os.ReadFile(s.runs)
	for rest := string(text); ; {
		var pid int
		if n, _ := fmt.Sscan(rest, &pid); n == 0 {
			return pids
		}
		pids = append(pids, pid)
		rest = rest[len(fmt.Sprint(pid))+1:]
	}
}

// goOn lets the waiting run and all later runs do their work.
func (s *slowTool) goOn() {
	s.Helper()
	s.must(unix.Unmount(s.path, unix.MNT_DETACH))
	var down *os.File
	var err error
	if !eventually(func() bool { // it fails until a run waits, soon after it has noted itself
		down, err = os.OpenFile(s.down, os.O_WRONLY|unix.O_NONBLOCK, 0)
		return err == nil
	}) {
		s.Fatal(err)
	}
	_, err = down.WriteString("go on\n")
	s.must(err)
	s.must(down.Close())
}

// lastingCase is work that takes longer than a call.
type lastingCase struct {
	tool    string // the tool that does the work
	prepare func(w *world, r node.StageRequest, image string)
	says    string // part of the error of an impatient call, about the work that goes on
}

func lastingCases() map[string]lastingCase {
	return map[string]lastingCase{
		"format": {"mkfs.ext4", func(*world, node.StageRequest, string) {}, "making the ext4 on /dev/loop"},
		"check": {"e2fsck", func(w *world, r node.StageRequest, image string) {
			w.used(r)
			out, err := exec.CommandContext(w.context(), "debugfs", "-w", "-R", "set_super_value state 2",
				image).CombinedOutput()
			if err != nil {
				w.Fatalf("debugfs: %v\n%s", err, out)
			}
		}, "checking the ext4 on /dev/loop"},
		"grow": {"resize2fs", func(w *world, r node.StageRequest, image string) {
			w.used(r)
			w.must(os.Truncate(image, 64<<20))
		}, "growing the ext4 on /dev/loop"},
	}
}

// used stages the volume once and puts data on it.
func (w *world) used(r node.StageRequest) {
	w.Helper()
	w.stage(r)
	w.write(filepath.Join(r.StagingPath, "data"), "data")
	w.unstage(r)
}

// Work on a device continues after its call, later calls find it, and it is begun once: the volume is staged after
// finitely many calls. Meanwhile nobody gets the volume.
func TestWorkOnADeviceOutlivesItsCall(t *testing.T) {
	for name, c := range lastingCases() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", 16)
			staging := w.stageRequest("v")
			c.prepare(w, staging, image)
			tool := newSlowTool(w, c.tool)
			for range 3 {
				w.want(tool.impatient(staging), backends.Busy, c.says, "goes on in the background", "so far")
				w.want(w.service.Publish(w.context(), w.publishRequest("v")), backends.InUse)
				if len(w.loops()) != 1 || len(w.mounts()) != 0 {
					t.Errorf("while the tool works there are %v and %v", w.loops(), w.mounts())
				}
			}
			tool.goOn()
			w.stage(staging)
			if runs := tool.started(); len(runs) != 1 {
				t.Errorf("the tool was started %d times, want once", len(runs))
			}
			if name != "format" {
				w.wantContent(filepath.Join(staging.StagingPath, "data"), "data")
			}
			w.publish(w.publishRequest("v"))
			w.unpublish(w.publishRequest("v"))
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// walks counts the ownership walks.
type walks struct{ began, failed atomic.Int32 }

func (c *walks) WalkBegan() { c.began.Add(1) }

func (c *walks) WalkProgressed(int64, int64, int64) {}

func (c *walks) WalkEnded(_ time.Duration, err error) {
	if err != nil {
		c.failed.Add(1)
	}
}

// The ownership walk continues after its call, on a server that does not answer for a while.
func TestOwnershipOutlivesItsCall(t *testing.T) {
	server := stall.Serve(t)
	w := newServedWorld(t)
	w.groups, w.hasty = true, false // only the walk hangs
	seen := &walks{}
	w.observer = seen
	w.restart()
	w.must(os.Mkdir(filepath.Join(server.Real, "v"), 0o755))
	w.shelf.sources["v"] = backends.Directory{Path: filepath.Join(server.Dir, "v")}
	staging := w.stageRequest("v")
	staging.MountGroup = "4711"
	for i := range 200 {
		w.write(filepath.Join(server.Real, "v", fmt.Sprint(i)), "data")
	}
	server.StopAt(t, stall.Lookup, 100)
	stage := func(ctx context.Context) error { return w.service.Stage(ctx, staging) }
	for i := range 3 {
		var err error
		if i == 0 {
			err = w.until(func() bool { return server.Stopped(t) }, stage)
		} else {
			err = w.brief(stage)
		}
		w.want(err, backends.Busy, "giving the files", "4711", "goes on in the background")
		w.want(w.service.Publish(w.context(), w.publishRequest("v")), backends.InUse)
	}
	server.Continue(t)
	w.stage(staging)
	if seen.began.Load() != 1 || seen.failed.Load() != 0 {
		t.Errorf("%d walks were begun, and %d failed; want one that succeeds", seen.began.Load(), seen.failed.Load())
	}
	if got := w.groupOf(filepath.Join(staging.StagingPath, "199")); got != 4711 {
		t.Errorf("the last file belongs to group %d", got)
	}
	w.unstage(staging)
	w.wantNothingLeft()
}

// Unstage ends background work and waits for it: nothing writes to the device any more. The volume can be staged again.
func TestUnstageEndsWork(t *testing.T) {
	for name, c := range lastingCases() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", 16)
			staging := w.stageRequest("v")
			c.prepare(w, staging, image)
			tool := newSlowTool(w, c.tool)
			w.want(tool.impatient(staging), backends.Busy)
			if name == "grow" { // a resize is not interrupted: only this node could repair that
				unstage := func(ctx context.Context) error { return w.service.Unstage(ctx, "v", staging.StagingPath) }
				w.want(w.brief(unstage), backends.Busy, "growing the ext4", "goes on")
				tool.goOn()
				w.unstage(staging)
			} else {
				w.unstage(staging)
				w.must(unix.Unmount(tool.path, unix.MNT_DETACH))
			}
			if pid := tool.started()[0]; unix.Kill(pid, 0) == nil {
				t.Errorf("process %d of the tool is alive after Unstage", pid)
			}
			w.wantNothingLeft()
			w.stage(staging)
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// The end of the process ends background work; the next process resumes it.
func TestCloseEndsWork(t *testing.T) {
	for _, name := range []string{"format", "check"} {
		t.Run(name, func(t *testing.T) {
			c := lastingCases()[name]
			w := newWorld(t)
			image := w.image("v", 16)
			staging := w.stageRequest("v")
			c.prepare(w, staging, image)
			tool := newSlowTool(w, c.tool)
			w.want(tool.impatient(staging), backends.Busy)
			w.must(w.service.Close(w.context()))
			if pid := tool.started()[0]; unix.Kill(pid, 0) == nil {
				t.Errorf("process %d of the tool outlives the service", pid)
			}
			w.want(w.service.Stage(w.context(), staging), backends.Unavailable, "the process is ending")
			w.must(unix.Unmount(tool.path, unix.MNT_DETACH))
			w.restart()
			w.stage(staging)
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// A killed process leaves its tool at work. Until the tool has ended, a new process neither begins another nor releases
// the volume. Then it finishes.
func TestToolOfAKilledProcess(t *testing.T) {
	for name, c := range lastingCases() {
		for _, disk := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, disk %t", name, disk), func(t *testing.T) {
				w := newWorld(t)
				image := w.image("v", 16)
				staging := w.stageRequest("v")
				if disk {
					w.shelf.sources["v"] = backends.Device{Path: w.attach(image)}
					w.Cleanup(func() { _ = device.Detach(w.context(), image, patience) })
				}
				c.prepare(w, staging, image)
				if disk && name == "grow" {
					_, err := device.Refresh(w.context(), w.shelf.sources["v"].(backends.Device).Path)
					w.must(err)
				}
				tool := newSlowTool(w, c.tool)
				w.want(tool.impatient(staging), backends.Busy)
				w.restart()
				w.service.DetachWithin(briefly)
				w.want(w.service.Stage(w.context(), staging), backends.Busy, "a tool that was started before still works on it")
				if err := w.service.Unstage(w.context(), "v", staging.StagingPath); !backends.Is(err, backends.Busy) &&
					!backends.Is(err, backends.InUse) {
					t.Errorf("unstaged while a tool works on the device: %v", err)
				}
				w.service.DetachWithin(patience)
				if runs := tool.started(); len(runs) != 1 {
					t.Errorf("the tool was started %d times, want once", len(runs))
				}
				tool.goOn()
				var err error
				if !eventually(func() bool { err = w.service.Stage(w.context(), staging); return err == nil }) {
					t.Errorf("staging after the tool has ended: %v", err)
				}
				// The tool's former parent may hold the lock for a moment longer.
				if !eventually(func() bool { err = w.service.Unstage(w.context(), "v", staging.StagingPath); return err == nil }) {
					t.Errorf("unstaging after the tool has ended: %v", err)
				}
				if !disk {
					w.wantNothingLeft()
				}
			})
		}
	}
}

// The next call reports the error of background work, once, and nothing is left.
func TestFailureOfWork(t *testing.T) {
	w := newWorld(t)
	w.image("v", 16)
	staging := w.stageRequest("v")
	tool := newSlowTool(w, "mkfs.ext4")
	w.want(tool.impatient(staging), backends.Busy)
	w.must(unix.Kill(tool.started()[0], unix.SIGKILL))
	w.want(w.service.Stage(w.context(), staging), backends.Unknown, "mkfs.ext4")
	w.wantNothingLeft()
	w.must(unix.Unmount(tool.path, unix.MNT_DETACH))
	w.stage(staging)
	w.unstage(staging)
	w.wantNothingLeft()
}

// mayGrowMounted reports whether the kernel lets this process grow a mounted ext4: with CAP_SYS_RESOURCE.
func (w *world) mayGrowMounted() bool {
	w.Helper()
	text, err := os.ReadFile("/proc/self/status")
	w.must(err)
	_, line, _ := strings.Cut(string(text), "CapEff:\t")
	var effective uint64
	_, err = fmt.Sscanf(line, "%x", &effective)
	w.must(err)
	return effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// An ext4 on a device that has grown fills it when it is staged. The kernel grows it if permitted, which needs no full
// check. The same is true after a stage that was killed after the mount.
func TestGrowsOnStage(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", 16)
			staging := w.stageRequest("v")
			w.used(staging)
			if killed {
				w.stage(staging)
				w.intend(staging, ledger.Source{Kind: ledger.Device, Path: image, Image: true})
			}
			w.must(os.Truncate(image, 64<<20))
			if killed {
				_, err := device.Refresh(w.context(), strings.Fields(w.loops()[0])[0])
				w.must(err)
			}
			online := w.mayGrowMounted()
			t.Logf("the kernel may grow a mounted ext4: %t", online)
			if online {
				w.bind("/bin/false", "/usr/sbin/e2fsck")
				t.Cleanup(func() { _ = unix.Unmount("/usr/sbin/e2fsck", unix.MNT_DETACH) })
			}
			w.stage(staging)
			stats, err := w.service.Stats(w.context(), "v", staging.StagingPath)
			w.must(err)
			if stats.Bytes.Total < 48<<20 {
				t.Errorf("the filesystem has %d bytes on a device of 64 MiB", stats.Bytes.Total)
			}
			w.wantContent(filepath.Join(staging.StagingPath, "data"), "data")
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}
