package node_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
)

// victimFile, in the working directory, makes TestVictim the process that TestKilled kills. It contains the round's
// number.
const victimFile = "victim"

// fleet puts one volume of each form on the shelf. Each round has other volumes, so that formatting occurs in each.
func (w *world) fleet(round int) (requests []node.StageRequest) {
	w.Helper()
	for _, form := range []struct {
		name string
		add  func(volume string)
	}{
		{"ext4", func(v string) { w.keep(v, 16) }},
		{"xfs", func(v string) { w.keep(v, 300) }},
		{"raw", func(v string) { w.keep(v, 8) }},
		{"plain", func(v string) { w.directory(v) }},
	} {
		volume := fmt.Sprint(form.name, "-", round)
		form.add(volume)
		request := w.stageRequest(volume)
		switch form.name {
		case "raw":
			request.Use.Type = backends.Block
		case "xfs":
			request.Use.FSType = form.name
		}
		requests = append(requests, request)
	}
	return requests
}

// keep is image for a file that may exist already.
func (w *world) keep(volume string, mib int64) {
	w.Helper()
	if _, err := os.Stat(w.path("images", volume)); errors.Is(err, os.ErrNotExist) {
		w.image(volume, mib)
		return
	}
	w.shelf.sources[volume] = backends.Device{Path: w.path("images", volume), Image: true}
}

// lifecycle runs one volume through all calls, and checks its data on the way.
func (w *world) lifecycle(r node.StageRequest) error {
	publishing := w.publishRequest(r.Volume)
	publishing.Use = r.Use
	err := w.service.Stage(w.context(), r)
	if err == nil {
		err = w.service.Publish(w.context(), publishing)
	}
	if file := filepath.Join(publishing.TargetPath, "file"); err == nil && r.Use.Type == backends.Mount {
		if data, absent := os.ReadFile(file); absent == nil && len(data) > 0 && string(data) != r.Volume {
			return fmt.Errorf("VIOLATION: volume %s holds %q", r.Volume, data)
		}
		err = os.WriteFile(file, []byte(r.Volume), 0o600)
	}
	if err == nil {
		err = w.service.Unpublish(w.context(), r.Volume, publishing.TargetPath)
	}
	if err == nil {
		err = w.service.Unstage(w.context(), r.Volume, r.StagingPath)
	}
	return err
}

// TestVictim does nothing unless TestKilled started it.
func TestVictim(t *testing.T) {
	round, err := os.ReadFile(victimFile)
	if err != nil {
		return
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, dir: dir, shelf: &shelf{sources: map[string]backends.Source{}}}
	w.restart()
	var number int
	if _, err := fmt.Sscan(string(round), &number); err != nil {
		t.Fatal(err)
	}
	for _, request := range w.fleet(number) {
		go func() {
			for {
				if err := w.lifecycle(request); err != nil {
					fmt.Fprintln(os.Stderr, request.Volume, err)
				}
			}
		}()
	}
	select {}
}

// The process is killed at random instants. After each kill, every call is completed by retrying, and nothing is left.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	w.mkdir(w.path("pods"))
	draw := drawing(t, 0)
	for round := range 15 {
		requests := w.fleet(round)
		w.write(w.path(victimFile), fmt.Sprint(round))
		words := w.kill(time.Duration(20+draw.IntN(250)) * time.Millisecond)
		w.must(os.Remove(w.path(victimFile)))
		w.restart()
		for _, request := range requests {
			w.finish(request)
		}
		w.wantNothingLeft()
		if t.Failed() {
			t.Fatalf("in round %d; the victim said:\n%s", round, words)
		}
	}
}

// kill starts a victim and kills it after a while. It returns the victim's error output.
func (w *world) kill(after time.Duration) string {
	w.Helper()
	binary, err := os.Executable()
	w.must(err)
	var words strings.Builder
	command := exec.CommandContext(w.context(), binary, victim)
	command.Dir, command.Stderr = w.dir, &words
	w.must(command.Start())
	<-time.After(after) // not a wait for something: the seed chooses the instant
	w.must(command.Process.Signal(syscall.SIGKILL))
	if err := command.Wait(); err == nil {
		w.Error("the victim ended by itself")
	}
	return words.String()
}

// finish runs a volume through a whole lifecycle from any state, as an orchestrator would.
func (w *world) finish(r node.StageRequest) {
	w.Helper()
	target := w.publishRequest(r.Volume).TargetPath
	for _, step := range []func() error{
		func() error { return w.service.Unpublish(w.context(), r.Volume, target) },
		func() error { return w.service.Unstage(w.context(), r.Volume, r.StagingPath) },
		func() error { return w.lifecycle(r) },
	} {
		var err error
		if !eventually(func() bool { err = step(); return err == nil }) {
			w.Errorf("volume %s: %v", r.Volume, err)
		}
	}
}
