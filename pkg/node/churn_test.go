package node_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/loops"
	"github.com/stowage-csi/stowage/pkg/node"
)

// churnFlag is the flag for how long TestChurn stages and unstages in its long form.
const churnFlag = "churn"

func defineChurn() {
	flag.Duration(churnFlag, 0, "how long TestChurn stages and unstages; 0 for a number of rounds, 10m is the long form")
}

// churning reports whether to stage a volume once more. The short form does the same on each machine.
func churning() func(round int) bool {
	length, _ := time.ParseDuration(flag.Lookup(churnFlag).Value.String()) // what the flag itself took
	if length == 0 {
		return func(round int) bool { return round < 300 }
	}
	end := time.Now().Add(length)
	return func(int) bool { return time.Now().Before(end) }
}

// prying makes the test's binary a process that repeatedly opens, for an instant, each loop device over a file below a
// directory, the argument that follows. It leaves the loop devices of other tests alone.
const prying = "-prying"

// pry opens the loop devices, as udev does with each new device, until its parent ends.
func pry(dir string) {
	draw := rand.New(rand.NewPCG(1, 0))
	for os.Getppid() != 1 {
		devices, _ := loops.Attached()
		for _, device := range devices {
			if !strings.HasPrefix(device.File, dir+"/") {
				continue
			}
			if fd, err := unix.Open(device.Path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
				<-time.After(time.Duration(draw.IntN(300)) * time.Microsecond)
				_ = unix.Close(fd)
			}
		}
	}
}

// Raw and mounted volumes come and go as fast as possible while another process opens each loop device. So the devices
// are freed late, and their numbers are reused at once. No volume loses its device or shows that of another.
func TestChurn(t *testing.T) {
	w := newWorld(t)
	opener := exec.CommandContext(t.Context(), "/proc/self/exe", prying, w.dir)
	w.must(opener.Start())
	defer func() { _, _ = opener.Process.Kill(), opener.Wait() }() // its exit says nothing
	var stages, lost atomic.Int64
	var group sync.WaitGroup
	var requests []node.StageRequest
	for i := range 6 {
		volume, use := fmt.Sprint("mounted", i), backends.Mount
		if i%2 == 0 {
			volume, use = fmt.Sprint("raw", i), backends.Block
		}
		w.image(volume, 16)
		request := w.stageRequest(volume)
		request.Use.Type = use
		requests = append(requests, request)
	}
	more := churning()
	for i, request := range requests {
		draw := drawing(t, uint64(i))
		group.Go(func() {
			for n := 0; more(n) && !t.Failed(); n++ {
				w.churn(request, draw, &stages, &lost)
			}
		})
	}
	group.Wait()
	t.Logf("%d stages, %d devices lost", stages.Load(), lost.Load())
	w.wantNothingLeft()
}

// churn stages and unstages a volume once, and checks its device while it is staged.
func (w *world) churn(r node.StageRequest, draw *rand.Rand, stages, lost *atomic.Int64) {
	if err := w.service.Stage(w.context(), r); err != nil {
		w.Errorf("staging %s: %v", r.Volume, err)
		return
	}
	stages.Add(1)
	for range draw.IntN(4) {
		if err := w.isOwn(r); err != nil {
			lost.Add(1)
			w.Errorf("VIOLATION: %s: %v", r.Volume, err)
		}
	}
	if err := w.service.Unstage(w.context(), r.Volume, r.StagingPath); err != nil {
		w.Errorf("unstaging %s: %v", r.Volume, err)
	}
}

// isOwn returns an error unless the volume shows its image where it is staged.
func (w *world) isOwn(r node.StageRequest) error {
	var image, place unix.Stat_t
	if err := unix.Stat(w.path("images", r.Volume), &image); err != nil {
		return err
	}
	path, number := r.StagingPath, &place.Dev
	if r.Use.Type == backends.Block {
		path, number = filepath.Join(path, "device"), &place.Rdev
	}
	if err := unix.Stat(path, &place); err != nil {
		return err
	}
	fd, err := unix.Open(fmt.Sprintf("/dev/loop%d", unix.Minor(*number)), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	info, err := unix.IoctlLoopGetStatus64(fd)
	if err != nil {
		return fmt.Errorf("its device holds nothing: %w", err)
	}
	if info.Inode != image.Ino || info.Device != image.Dev {
		return fmt.Errorf("its device shows another image: inode %d, want %d", info.Inode, image.Ino)
	}
	return nil
}
