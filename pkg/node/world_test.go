package node_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/tests/stall"
)

// shelf is a node backend with the volumes that a test put there.
type shelf struct {
	mu       sync.Mutex
	sources  map[string]backends.Source
	failure  error
	released []string
	used     map[string]bool // by handle, from Source to Release
	stuck    error           // the error of Release
	slow     chan struct{}   // Release waits for it, whatever its context says
	waiting  atomic.Bool     // Release waits
	measure  func(handle, device string) ([]backends.Measurement, error)
}

func (s *shelf) Source(_ context.Context, a backends.Attachment) (backends.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return nil, s.failure
	}
	source, ok := s.sources[a.Handle]
	if !ok {
		return nil, backends.Errorf(backends.NotFound, "there is no volume %q", a.Handle)
	}
	if _, is := source.(backends.Device); !is && a.Type == backends.Block {
		return nil, backends.Errorf(backends.Unsupported, "volume %q is no device: use %s", a.Handle, backends.Mount)
	}
	s.used[a.Handle] = true
	return source, nil
}

func (s *shelf) Used(_ context.Context, handle string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[handle]
}

func (s *shelf) Release(_ context.Context, handle string) error {
	if s.slow != nil {
		s.waiting.Store(true)
		<-s.slow
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stuck != nil {
		return s.stuck
	}
	s.released = append(s.released, handle)
	delete(s.used, handle)
	return nil
}

func (s *shelf) Measure(_ context.Context, handle, device string) ([]backends.Measurement, error) {
	return s.measure(handle, device)
}

func (s *shelf) Limit(context.Context) (int64, error) { return 7, s.failure }

func (s *shelf) Topology(context.Context) (backends.Topology, error) {
	return backends.Topology{"zone": "a"}, s.failure
}

func (s *shelf) Inspect(context.Context) ([]backends.StorageIssue, error) {
	return []backends.StorageIssue{{Reason: "PoolDegraded"}}, s.failure
}

// world is a node with volumes, all of it below one directory.
type world struct {
	testing.TB
	dir       string
	shelf     *shelf
	service   *node.Service
	groups    bool
	observer  node.OwnershipObserver
	formats   int  // node.Config.MaxFormats
	contained bool // node.Config.Contained
	noteless  bool // the backend notes no use, like that of a network filesystem
	hasty     bool // calls that hang are given up as soon as on a node
	clock     *clock
	log       *slog.Logger
}

func newWorld(t testing.TB) *world {
	t.Helper()
	needRoot(t)
	stall.Apart(t)
	return makeWorld(t, &world{})
}

// newServedWorld is newWorld for a test with a server that stalls.
func newServedWorld(t testing.TB) *world {
	t.Helper()
	needRoot(t)
	return makeWorld(t, &world{hasty: true})
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounting needs root")
	}
}

func makeWorld(t testing.TB, w *world) *world {
	t.Helper()
	w.TB, w.dir, w.shelf = t, t.TempDir(), &shelf{sources: map[string]backends.Source{}, used: map[string]bool{}}
	t.Cleanup(w.sweep)
	w.restart()
	return w
}

// restart creates a new service, as after a kill.
func (w *world) restart() {
	w.Helper()
	features := backends.Resolve(nil, w.shelf)
	if w.noteless {
		features.Release = nil
	}
	service, err := node.New(w.context(), node.Config{
		Backend: w.shelf, Features: features, NodeID: "node-1",
		StateDir: w.path("state"), DelegateFSGroup: w.groups, Ownership: w.observer, MaxFormats: w.formats,
		Contained: w.contained, Log: w.log, Now: w.now(),
	})
	w.must(err)
	if !w.hasty {
		service.BePatient(patience)
		service.DetachWithin(patience)
	}
	w.service = service
}

// now returns the clock of the service.
func (w *world) now() func() time.Time {
	if w.clock == nil {
		return nil
	}
	return w.clock.read
}

// amnesia is a restart without the ledger.
func (w *world) amnesia() {
	w.Helper()
	w.must(os.RemoveAll(w.path("state")))
	w.restart()
}

// context returns the test's own context, which is still valid during cleanup.
func (w *world) context() context.Context { return context.WithoutCancel(w.Context()) }

func (w *world) path(elements ...string) string {
	return filepath.Join(append([]string{w.dir}, elements...)...)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// want checks that err is of the Kind and that its text has the words.
func (w *world) want(err error, kind backends.Kind, words ...string) {
	w.Helper()
	if !backends.Is(err, kind) {
		w.Errorf("got %v (Kind %s), want Kind %s", err, backends.KindOf(err), kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.Errorf("the error %q does not say %q", err, word)
		}
	}
}

func (w *world) mkdir(path string) string {
	w.Helper()
	w.must(os.MkdirAll(path, 0o755))
	return path
}

// image puts a volume on the shelf that is a sparse file of that many MiB.
func (w *world) image(name string, mib int64) string {
	w.Helper()
	path := w.path("images", name)
	w.mkdir(filepath.Dir(path))
	w.must(os.WriteFile(path, nil, 0o600))
	w.must(os.Truncate(path, mib<<20))
	w.shelf.sources[name] = backends.Device{Path: path, Image: true, Identity: backends.Identity{SizeBytes: mib << 20}}
	return path
}

// directory puts a volume on the shelf that is a directory.
func (w *world) directory(name string) {
	w.Helper()
	path := w.mkdir(w.path("directories", name))
	w.shelf.sources[name] = backends.Directory{Path: path}
}

// export puts a volume on the shelf that stands for a network filesystem: a tmpfs also has neither a device nor a
// directory.
func (w *world) export(name string) {
	w.shelf.sources[name] = backends.Export{FSType: "tmpfs", Source: "share-of-" + name, Options: []string{"size=4m"}}
}

// stageRequest returns a request for the volume in a mode for many writers.
func (w *world) stageRequest(name string) node.StageRequest {
	w.Helper()
	return node.StageRequest{
		Volume: name, StagingPath: w.mkdir(w.path("staging", name)),
		Use: node.Use{Type: backends.Mount, Mode: backends.SingleNodeMultiWriter},
	}
}

func (w *world) publishRequest(name string) node.PublishRequest {
	w.Helper()
	return node.PublishRequest{
		Volume: name, StagingPath: w.path("staging", name), TargetPath: filepath.Join(w.mkdir(w.path("pods")), name),
		Use: node.Use{Type: backends.Mount, Mode: backends.SingleNodeMultiWriter},
	}
}

func (w *world) stage(r node.StageRequest) {
	w.Helper()
	w.must(w.service.Stage(w.context(), r))
}

func (w *world) publish(r node.PublishRequest) {
	w.Helper()
	w.must(w.service.Publish(w.context(), r))
}

func (w *world) unpublish(r node.PublishRequest) {
	w.Helper()
	w.must(w.service.Unpublish(w.context(), r.Volume, r.TargetPath))
}

func (w *world) unstage(r node.StageRequest) {
	w.Helper()
	w.must(w.service.Unstage(w.context(), r.Volume, r.StagingPath))
}

func (w *world) inspect(path string) mount.State {
	w.Helper()
	state, err := mount.Inspect(w.context(), path)
	w.must(err)
	return state
}

// bind mounts a directory or file at another place, behind the service's back.
func (w *world) bind(source, path string) {
	w.Helper()
	target, err := safepath.OpenTarget(path)
	w.must(err)
	defer func() { _ = target.Close() }()
	_, err = mount.Bind(source, target, false, nil)
	w.must(err)
}

// stack mounts a tmpfs over a path, whatever is there, behind the service's back.
func (w *world) stack(path string) {
	w.Helper()
	w.must(unix.Mount("stacked", path, "tmpfs", 0, ""))
}

// corrupt mounts a filesystem whose server is dead, behind the service's back.
func (w *world) corrupt(path string) {
	w.Helper()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	w.must(err)
	w.must(unix.Mount("dead", path, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse.Fd())))
	w.must(fuse.Close())
}

func (w *world) write(path, content string) {
	w.Helper()
	w.must(os.WriteFile(path, []byte(content), 0o600))
}

func (w *world) wantContent(path, content string) {
	w.Helper()
	data, err := os.ReadFile(path)
	switch {
	case err != nil:
		w.Errorf("%s cannot be read: %v; want %q", path, err, content)
	case string(data) != content:
		w.Errorf("VIOLATION: %s holds %q, want %q", path, data, content)
	}
}

// mounts returns the mounts below the world's directory.
func (w *world) mounts() []string {
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(w.dir))
	if err != nil {
		w.Error(err)
	}
	var paths []string
	for _, info := range infos {
		paths = append(paths, info.Mountpoint)
	}
	return paths
}

// loops returns the loop devices over files below the world's directory, as "/dev/loop3 /path".
func (w *world) loops() []string {
	dirs, _ := filepath.Glob("/sys/block/loop[0-9]*")
	var found []string
	for _, dir := range dirs {
		file, err := os.ReadFile(filepath.Join(dir, "loop/backing_file"))
		if err == nil && strings.HasPrefix(string(file), w.dir) {
			found = append(found, "/dev/"+filepath.Base(dir)+" "+strings.TrimSpace(string(file)))
		}
	}
	return found
}

// patience is how long a test waits for an event that occurs at once on an idle machine.
const patience = 2 * time.Minute

// briefly is how long a test waits for an event that does not occur.
const briefly = 10 * time.Millisecond

// eventually retries until the condition holds: udev and others open loop devices for an instant.
func eventually(condition func() bool) bool {
	for deadline := time.Now().Add(patience); ; {
		if condition() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		<-time.After(time.Millisecond)
	}
}

// wantNothingLeft checks that no mount, loop device, record or target is left.
func (w *world) wantNothingLeft() {
	w.Helper()
	if mounts := w.mounts(); len(mounts) != 0 {
		w.Errorf("mounts are left: %v", mounts)
	}
	if !eventually(func() bool { return len(w.loops()) == 0 }) {
		w.Errorf("loop devices are left: %v", w.loops())
	}
	for _, pattern := range []string{"state/*.json*", "state/formatting/*", "pods/*", "staging/*/*"} {
		if left, _ := filepath.Glob(w.path(pattern)); len(left) != 0 {
			w.Errorf("files are left: %v", left)
		}
	}
}

// sweep takes down what a failed test left.
func (w *world) sweep() {
	for range 3 {
		for _, path := range slices.Backward(w.mounts()) {
			_ = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
	}
	for _, loop := range w.loops() {
		_, file, _ := strings.Cut(loop, " ")
		_ = device.Detach(w.context(), strings.TrimSuffix(file, " (deleted)"), patience)
	}
}

// detach unmounts a path behind the service's back.
func (w *world) detach(path string) {
	w.Helper()
	w.must(unix.Unmount(path, unix.MNT_DETACH))
}

// fsTypeAt returns the kernel's name for the filesystem mounted at a path.
func (w *world) fsTypeAt(path string) string {
	w.Helper()
	infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(path))
	w.must(err)
	if len(infos) == 0 {
		return "nothing"
	}
	return infos[0].FSType
}

// checksum returns the digest of a whole image.
func checksum(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}
