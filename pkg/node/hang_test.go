package node_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/tests/stall"
)

// These tests stop the server of a volume's filesystem, at a request or between two calls. They check what becomes of
// the call that hangs, of later calls, of other volumes, and of all of these once the server answers.

// requestTime is the time of a request that waits for a stopped server, which never answers: the request may end at any
// moment.
const requestTime = 250 * time.Millisecond

// imageSize is the size of the images, which are sparse: the minimum for an xfs.
const imageSize = 320 << 20

// form is a form of volume on a server that stops.
type form string

const (
	filesystemForm form = "filesystem on an image"
	rawForm        form = "raw image"
	directoryForm  form = "directory"
)

// hangCase is one call that may hang.
type hangCase struct {
	form    form
	call    string        // the name of the call
	request stall.Request // stop at this request, counted from the call on; empty for before the call
	number  int
	dirty   bool // e2fsck has work to do
}

func hangCases() []hangCase {
	cases := []hangCase{
		{form: filesystemForm, call: "stage", request: stall.Lookup, number: 1},
		{form: filesystemForm, call: "stage", request: stall.Attribute, number: 1},
		{form: filesystemForm, call: "stage", request: stall.Open, number: 1},
		{form: filesystemForm, call: "stage", request: stall.Read, number: 1},                 // probing
		{form: filesystemForm, call: "stage", request: stall.Write, number: 1},                // mkfs
		{form: filesystemForm, call: "stage", request: stall.Write, number: 5},                // mkfs
		{form: filesystemForm, call: "stage", request: stall.Sync, number: 1},                 // mkfs
		{form: filesystemForm, call: "stage", request: stall.Sync, number: 3},                 // after mkfs, or the mount
		{form: filesystemForm, call: "restage", request: stall.Read, number: 9},               // mount
		{form: filesystemForm, call: "restage", request: stall.Read, number: 9, dirty: true},  // e2fsck
		{form: filesystemForm, call: "restage", request: stall.Write, number: 1, dirty: true}, // e2fsck
	}
	for _, f := range []form{filesystemForm, rawForm, directoryForm} {
		for _, call := range []string{"stage", "publish", "stats", "health", "expand", "unpublish", "unstage"} {
			cases = append(cases, hangCase{form: f, call: call})
		}
	}
	return cases
}

func (c hangCase) String() string {
	name := string(c.form) + "/" + c.call
	if c.request != "" {
		name += fmt.Sprintf(" at %s %d", c.request, c.number)
	}
	if c.dirty {
		name += " with errors to repair"
	}
	return name
}

// answers reports whether the call needs no answer of the stopped server: a filesystem mounted from an image answers
// itself, and a mount that is taken down is not asked.
func (c hangCase) answers() bool {
	switch c.call {
	case "unpublish", "health":
		return true
	case "publish", "stats":
		return c.form != directoryForm
	case "unstage":
		return c.form == directoryForm
	}
	return false
}

// hanging is a world with a volume "slow" on a server that stops.
type hanging struct {
	*world
	server  *stall.Server
	stage   node.StageRequest
	publish node.PublishRequest
}

func newHanging(t *testing.T, f form, call string) *hanging {
	t.Helper()
	server := stall.Serve(t)
	h := &hanging{world: newServedWorld(t), server: server}
	t.Cleanup(func() { // for a test that failed
		server.Continue(t)
		ctx, cancel := context.WithTimeout(h.context(), patience)
		defer cancel()
		for _, call := range []string{"unpublish", "unstage"} {
			_ = h.call(ctx, call)
		}
	})
	h.stage, h.publish = h.stageRequest("slow"), h.publishRequest("slow")
	switch f {
	case directoryForm:
		h.must(os.Mkdir(filepath.Join(server.Real, "slow"), 0o755))
		h.shelf.sources["slow"] = backends.Directory{Path: filepath.Join(server.Dir, "slow")}
	case rawForm:
		h.stage.Use.Type, h.publish.Use.Type = backends.Block, backends.Block
		fallthrough
	case filesystemForm:
		if call == "expand" && f == filesystemForm { // growing a mounted ext4 takes a capability that this process may lack
			h.stage.Use.FSType, h.publish.Use.FSType = "xfs", "xfs"
		}
		h.must(os.WriteFile(filepath.Join(server.Real, "slow"), nil, 0o600))
		h.must(os.Truncate(filepath.Join(server.Real, "slow"), imageSize))
		h.shelf.sources["slow"] = backends.Device{Path: filepath.Join(server.Dir, "slow"), Image: true,
			Identity: backends.Identity{SizeBytes: imageSize}}
	}
	h.image("quick", 32)
	return h
}

// call makes a call for the volume by name.
func (h *hanging) call(ctx context.Context, name string) error {
	switch name {
	case "stage", "restage":
		return h.service.Stage(ctx, h.stage)
	case "publish":
		return h.service.Publish(ctx, h.publish)
	case "stats":
		_, err := h.service.Stats(ctx, "slow", h.publish.TargetPath)
		return err
	case "health":
		_, err := h.service.Health(ctx, "slow", h.publish.TargetPath, h.stage.StagingPath)
		return err
	case "expand":
		_, err := h.service.Expand(ctx, node.ExpandRequest{Volume: "slow", Path: h.publish.TargetPath})
		return err
	case "unpublish":
		return h.service.Unpublish(ctx, "slow", h.publish.TargetPath)
	case "unstage":
		return h.service.Unstage(ctx, "slow", h.stage.StagingPath)
	}
	return backends.Errorf(backends.Invalid, "no call %q", name)
}

// prepare makes the calls that must come first.
func (h *hanging) prepare(call string) {
	h.Helper()
	steps := map[string][]string{
		"stage": nil, "restage": {"stage", "unstage"}, "publish": {"stage"}, "unstage": {"stage"},
		"stats": {"stage", "publish"}, "health": {"stage", "publish"}, "expand": {"stage", "publish"},
		"unpublish": {"stage", "publish"},
	}
	for _, step := range steps[call] {
		h.must(h.call(h.context(), step))
	}
}

// timed makes the call with a time limit, and checks that it returns after that, and how.
func (h *hanging) timed(call string, time time.Duration) error {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.context(), time)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- h.call(ctx, call) }()
	select {
	case err := <-done:
		return h.judged(call, err)
	case <-ctx.Done():
		return h.judged(call, h.returned(done))
	}
}

// stopped makes the call with a time that ends once the server has stopped at a request of the call.
func (h *hanging) stopped(call string) error {
	h.Helper()
	stopped := func() bool { return h.server.Stopped(h) }
	return h.judged(call, h.until(stopped, func(ctx context.Context) error { return h.call(ctx, call) }))
}

// judged checks the Kind of a call's error and returns the error.
func (h *hanging) judged(call string, err error) error {
	h.Helper()
	if kind := backends.KindOf(err); err != nil && kind != backends.Unavailable && kind != backends.Busy &&
		kind != backends.InUse {
		h.Errorf("%s ended with %v (%s), want Unavailable, Busy or InUse", call, err, kind)
	}
	return err
}

// lifecycle runs the other volume through its life.
func (h *hanging) lifecycle() error {
	stage, publish := h.stageRequest("quick"), h.publishRequest("quick")
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return h.service.Stage(ctx, stage) },
		func(ctx context.Context) error { return h.service.Publish(ctx, publish) },
		func(ctx context.Context) error {
			_, err := h.service.Stats(ctx, "quick", publish.TargetPath)
			return err
		},
		func(ctx context.Context) error { return h.service.Unpublish(ctx, "quick", publish.TargetPath) },
		func(ctx context.Context) error { return h.service.Unstage(ctx, "quick", stage.StagingPath) },
	} {
		ctx, cancel := context.WithTimeout(h.context(), patience)
		err := step(ctx)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// persist retries the call, as an orchestrator does, until it succeeds.
func (h *hanging) persist(call string) {
	h.Helper()
	var err error
	if !eventually(func() bool {
		ctx, cancel := context.WithTimeout(h.context(), patience)
		defer cancel()
		err = h.call(ctx, call)
		return err == nil
	}) {
		h.Errorf("%s does not succeed once the server answers: %v", call, err)
	}
}

// descriptors returns the open files of this process, except those of the runtime.
func descriptors(t testing.TB) (open []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && !strings.HasPrefix(to, "anon_inode:") {
			open = append(open, to)
		}
	}
	return open
}

func TestServerStops(t *testing.T) {
	for _, c := range hangCases() {
		t.Run(c.String(), func(t *testing.T) { c.run(t) })
	}
}

// first makes the call during which the server stops.
func (c hangCase) first(h *hanging) error {
	h.Helper()
	switch {
	case c.request != "":
		return h.stopped(c.call)
	case c.call == "health": // which takes all its time to look at a mount of the server
		return h.judged(c.call, h.untilIn("/pkg/node/mount.", func(ctx context.Context) error { return h.call(ctx, c.call) }))
	case c.answers():
		return h.timed(c.call, patience)
	}
	return h.timed(c.call, requestTime)
}

func (c hangCase) run(t *testing.T) {
	h := newHanging(t, c.form, c.call)
	h.prepare(c.call)
	if c.dirty {
		output, err := exec.CommandContext(t.Context(), "debugfs", "-w", "-R", "set_super_value state 2",
			filepath.Join(h.server.Real, "slow")).CombinedOutput()
		if err != nil {
			t.Fatalf("debugfs: %v\n%s", err, output)
		}
	}
	h.must(h.lifecycle())
	if c.call == "health" { // It reports what it has found soon after the end of its time, and hangs no longer.
		h.service.BePatient(patience)
	}
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	if c.request == "" {
		h.server.Stop(t)
	} else {
		h.server.StopAt(t, c.request, c.number)
	}
	other := make(chan error, 1)
	go func() { other <- h.lifecycle() }() // calls that wait for the server wait until this has ended
	err := c.first(h)
	t.Logf("first: %v", err)
	if (err == nil) != c.answers() {
		t.Errorf("it succeeds without an answer: %t, want %t", err == nil, c.answers())
	}
	if c.request != "" && !h.server.Stopped(t) {
		t.Errorf("the server was not asked %s %d times", c.request, c.number)
	}
	for range 3 { // no later call hangs longer, or takes one more thread
		t.Logf("again: %v", h.timed(c.call, requestTime))
	}
	if err := <-other; err != nil {
		t.Errorf("another volume: %v", err)
	}
	if !eventually(func() bool { return runtime.NumGoroutine() <= goroutines+8 }) {
		t.Errorf("%d goroutines, %d before: those that hang pile up", runtime.NumGoroutine(), goroutines)
	}
	h.server.Continue(t)
	h.persist(c.call)
	for _, call := range []string{"unpublish", "unstage"} {
		h.persist(call)
	}
	h.wantNothingLeft()
	if !eventually(func() bool { return runtime.NumGoroutine() <= goroutines && len(descriptors(t)) <= len(files) }) {
		t.Errorf("%d goroutines and %d descriptors, %d and %d before\n%q\n%q", runtime.NumGoroutine(), len(descriptors(t)),
			goroutines, len(files), descriptors(t), files)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	}
}

// What an abandoned call made is undone once the server answers, without another call.
func TestLateStageIsUndone(t *testing.T) {
	for _, f := range []form{filesystemForm, rawForm} {
		for _, request := range []stall.Request{stall.Lookup, stall.Attribute, stall.Open, stall.Sync, stall.Read} {
			t.Run(fmt.Sprintf("%s at %s", f, request), func(t *testing.T) {
				h := newHanging(t, f, "stage")
				goroutines, files := runtime.NumGoroutine(), descriptors(t)
				h.server.StopAt(t, request, 1)
				if err := h.stopped("stage"); err == nil {
					if h.server.Stopped(t) {
						t.Error("staged without an answer")
					}
					h.server.Continue(t) // The kernel may have known the answer, and ask when the volume is unstaged.
					h.must(h.call(h.context(), "unstage"))
				}
				h.server.Continue(t)
				if !eventually(func() bool { return runtime.NumGoroutine() <= goroutines && len(descriptors(t)) <= len(files) }) {
					t.Errorf("%d goroutines and %d descriptors, %d and %d before", runtime.NumGoroutine(), len(descriptors(t)),
						goroutines, len(files))
				}
				var loops []string
				var err error
				if !eventually(func() bool { // the last close frees a loop device, and others may have opened it
					loops, err = device.FindLoops(h.context(), filepath.Join(h.server.Dir, "slow"))
					return err == nil && len(loops) == 0
				}) {
					t.Errorf("attached to %v (%v), want nothing", loops, err)
				}
				h.must(h.call(h.context(), "unstage")) // forgets the record
				h.wantNothingLeft()
			})
		}
	}
}

// A raw volume is not handed out again while a detach that was given up may still take its device away.
func TestStageAfterHungUnstage(t *testing.T) {
	h := newHanging(t, rawForm, "unstage")
	h.must(h.call(h.context(), "stage"))
	h.server.StopAt(t, stall.Lookup, 1)
	if err := h.stopped("unstage"); err == nil {
		t.Error("unstaged without an answer")
	}
	if err := h.timed("stage", patience); err == nil || !strings.Contains(err.Error(), "detaching") {
		t.Errorf("staging again: %v, want that it waits for the detaching", err)
	}
	h.server.Continue(t)
	h.persist("stage")
	h.persist("publish")
	device, err := os.Open(h.publish.TargetPath)
	h.must(err)
	size, err := device.Seek(0, io.SeekEnd)
	if _, read := device.ReadAt(make([]byte, 512), imageSize-512); err != nil || read != nil || size != imageSize {
		t.Errorf("the device has %d bytes (%v), want %d, and its end is read with %v", size, err, imageSize, read)
	}
	h.must(device.Close())
	h.persist("unpublish")
	h.persist("unstage")
	h.wantNothingLeft()
}

// A volume is unstaged while the mark of its formatting is being written. Unstage waits for that: a page written later
// could hit the data of the device's next user.
func TestUnstageAwaitsTheMark(t *testing.T) {
	h := newHanging(t, filesystemForm, "stage")
	h.server.StopAt(t, stall.Write, 1)
	h.want(h.stopped("stage"), backends.Busy, "making the ext4")
	for range 2 {
		err := h.brief(func(ctx context.Context) error { return h.call(ctx, "unstage") })
		h.want(err, backends.Busy, "told to end", "making the ext4")
	}
	h.server.Continue(t)
	h.persist("unstage")
	h.wantNothingLeft()
}
