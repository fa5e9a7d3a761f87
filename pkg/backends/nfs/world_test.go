package nfs

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
)

// patience is the time limit for operations that should be prompt, even on a busy machine.
const patience = 2 * time.Minute

// world is a backend over a stand-in.
type world struct {
	testing.TB
	*controllerSide
	node   *nodeSide
	root   string // of the share
	mount  export.Mounter
	log    *logBuffer
	config *Config
	data   string
	pace   pace // of the work in the background, if it is not the usual one
	close  func(context.Context) error
	// nodeOnly makes it a process that only serves the node.
	nodeOnly bool
}

// logBuffer keeps a log for a test to read.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	dir, mounter := newServers(tb)
	root := filepath.Join(dir, testServer, testShare)
	if err := os.MkdirAll(root, 0o755); err != nil {
		tb.Fatal(err)
	}
	w := &world{TB: tb, root: root, mount: mounter(standin.Servers(dir)), log: &logBuffer{}, config: &Config{},
		data: tb.TempDir()}
	w.open()
	tb.Cleanup(w.shut)
	return w
}

func (w *world) open() {
	w.Helper()
	instance, err := open(context.Background(), backends.Options{
		Driver: "nfs.test", DataDir: w.data, NodeID: "node-1", NodeOnly: w.nodeOnly, Config: w.config,
		Log: slog.New(slog.NewTextHandler(w.log, nil)),
	}, w.mount, w.paceOf)
	w.must(err)
	w.controllerSide, w.node, w.close = askedOnce(instance), instance.Node.(*nodeSide), instance.Close
}

// paceOf returns the pace of the work in the background, which begins while the driver opens.
func (w *world) paceOf(patience time.Duration) pace {
	if w.pace != (pace{}) {
		return w.pace
	}
	return paceOf(patience)
}

// askedOnce returns the controller of a driver whose callers have no second call under way: a caller that is turned
// away may retry at once.
func askedOnce(instance *backends.Instance) *controllerSide {
	e := instance.Controller.(*controllerSide)
	e.permits.apart = 0
	return e
}

func (w *world) shut() {
	w.must(backendtest.Close(w.Context(), &backends.Instance{Close: w.close}))
	w.close = nil
}

// reopen starts a new process.
func (w *world) reopen() {
	w.Helper()
	w.shut()
	w.open()
}

// quiet starts a new process in which no janitor looks at the shares of these specs by itself: a call wakes one only if
// it leaves work for it, as a deletion does. Otherwise a janitor could remove a test's incomplete files among the
// driver's own.
func (w *world) quiet(on ...backends.Spec) {
	w.Helper()
	w.nodeOnly = true // Such a process does not watch.
	w.reopen()
	for _, spec := range on {
		p, err := w.target(spec)
		w.must(err)
		w.janitors.mu.Lock()
		w.janitors.known[p.String()] = true
		w.janitors.mu.Unlock()
	}
}

// hurry starts a new process with another pace of the work in the background.
func (w *world) hurry(change func(p *pace)) {
	w.Helper()
	w.pace = paceOf(0)
	change(&w.pace)
	w.reopen()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// fails checks that err is of the Kind and that its text contains the given texts.
func (w *world) fails(what string, err error, kind backends.Kind, mentions ...string) {
	w.Helper()
	if !backends.Is(err, kind) {
		w.Errorf("%s: got %v (%s), want a failure that is %q", what, err, backends.KindOf(err), kind)
		return
	}
	for _, text := range mentions {
		if !strings.Contains(err.Error(), text) {
			w.Errorf("%s: the failure does not mention %q: %v", what, text, err)
		}
	}
}

// in returns a spec with a directory and an onDelete.
func in(name, subDir, onDelete string) backends.Spec {
	spec := specOf(name)
	spec.Parameters = &Parameters{Server: testServer, Share: testShare, SubDir: subDir, OnDelete: onDelete}
	spec.Claim = backends.Claim{Namespace: "team", Name: "claim", Volume: name}
	return spec
}

// leads makes this controller take over on the usual share.
func (w *world) leads() {
	w.Helper()
	w.leadsOn(specOf("x"))
}

// classes returns all classes.
func classes() []class { return []class{volumeCalls, snapshotCalls, changeCalls} }

// leadsOn makes this controller take over on the share of a spec, for all classes of calls.
func (w *world) leadsOn(spec backends.Spec) {
	w.Helper()
	p, err := w.target(spec)
	w.must(err)
	for _, calls := range classes() {
		w.ask("taking over", func() error {
			return w.pool.With(w.Context(), p.Address, "taking over", func(ctx context.Context, s *share.Share) error {
				h, err := s.Home(true)
				if err == nil {
					_, err = w.lead(ctx, h, calls, "a test's")
				}
				return err
			})
		})
	}
}

func (w *world) make(spec backends.Spec) *backends.Volume {
	w.Helper()
	var v *backends.Volume
	w.ask("creating "+spec.Name, func() (err error) { v, err = w.Create(w.Context(), spec); return err })
	return v
}

// path returns the path of an entry on the share.
func (w *world) path(elements ...string) string {
	return filepath.Join(append([]string{w.root}, elements...)...)
}

func (w *world) write(text string, elements ...string) {
	w.Helper()
	path := w.path(elements...)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(text), 0o644))
}

// eventually waits for work in the background.
func (w *world) eventually(what string, done func() bool) {
	w.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		select {
		case <-tick.C:
			if done() {
				return
			}
		case <-late:
			w.Fatalf("%s: not after %v; the log says\n%s", what, patience, w.log)
		}
	}
}

// tidy waits until the driver's directory holds only the given numbers of records, and no unfinished items.
func (w *world) tidy(volumes, snapshots int) {
	w.Helper()
	var have []string
	defer func() {
		if w.Failed() {
			w.Logf("the driver's directory holds %q", have)
		}
	}()
	w.eventually("tidying up", func() bool {
		have = nil
		counts := map[string]int{}
		for _, folder := range []string{share.Volumes, share.Snapshots, share.Making, share.Staging,
			share.Burials, share.Trash, share.Claims} {
			entries, err := os.ReadDir(w.path(share.HomeName, folder))
			w.must(err)
			for _, entry := range entries {
				counts[folder]++
				have = append(have, folder+"/"+entry.Name())
			}
		}
		return counts[share.Volumes] == volumes && counts[share.Claims] == volumes &&
			counts[share.Snapshots] == 2*snapshots &&
			counts[share.Making]+counts[share.Staging]+counts[share.Burials]+counts[share.Trash] == 0
	})
}

// idle reports whether no janitor is at work.
func (w *world) idle() bool {
	w.janitors.mu.Lock()
	defer w.janitors.mu.Unlock()
	return len(w.janitors.active) == 0
}

// photograph records everything below a directory, except the driver's own.
func photograph(tb testing.TB, dir string) []string {
	tb.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == share.HomeName {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s %v", path, info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data) + " " + info.ModTime().String()
		}
		all = append(all, text)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	slices.Sort(all)
	return all
}
