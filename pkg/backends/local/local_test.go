package local

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
	"github.com/stowage-csi/stowage/pkg/params"
)

const testDriver = "local.test.stowage.dev"

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// hasKind checks that err is of the Kind and that its text mentions what it should.
func hasKind(tb testing.TB, what string, err error, kind backends.Kind, mentions ...string) {
	tb.Helper()
	if !backends.Is(err, kind) {
		tb.Errorf("%s: got %v, want a failure that is %q", what, err, kind)
		return
	}
	for _, text := range mentions {
		if !strings.Contains(err.Error(), text) {
			tb.Errorf("%s: the failure does not mention %q: %v", what, text, err)
		}
	}
}

// patience is the time limit for steps that should be prompt, even on a busy machine.
const patience = 2 * time.Minute

// bothPools returns one pool of each type, below the data directory.
func bothPools() []PoolConfig {
	return []PoolConfig{{Name: "directory", Type: string(directory)}, {Name: "image", Type: string(image)}}
}

// patient returns a configuration with limits that no busy machine reaches.
func patient(pools ...PoolConfig) *Config {
	return &Config{Pools: pools, Limits: Limits{Open: patience, Look: patience, Reclaim: patience}}
}

// logBuffer stores a log for tests to read.
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

// fixture is a backend that can be closed and reopened.
type fixture struct {
	testing.TB
	*grouping
	options backends.Options
	log     *logBuffer
	close   func(context.Context) error
}

// newFixture opens an empty backend.
func newFixture(tb testing.TB, pools ...PoolConfig) *fixture {
	tb.Helper()
	return newFixtureIn(tb, filepath.Join(tb.TempDir(), "data"), pools...)
}

// newFixtureIn is newFixture with a data directory.
func newFixtureIn(tb testing.TB, dataDir string, pools ...PoolConfig) *fixture {
	tb.Helper()
	if len(pools) == 0 {
		pools = bothPools()
	}
	log := &logBuffer{}
	f := &fixture{TB: tb, log: log, options: backends.Options{
		Driver: testDriver, NodeID: "node-1", DataDir: dataDir,
		Config: patient(pools...), Log: slog.New(slog.NewTextHandler(log, nil)),
	}}
	f.open()
	tb.Cleanup(func() { f.shut() })
	return f
}

func (f *fixture) open() {
	f.Helper()
	instance, err := open(context.Background(), f.options)
	must(f, err)
	f.grouping = &grouping{engineOf(instance)}
	f.close = instance.Close
}

func (f *fixture) shut() {
	f.Helper()
	if f.close != nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := f.close(ctx); err != nil {
			f.Errorf("Close: %v", err)
		}
	}
	f.close = nil
}

func (f *fixture) reopen() {
	f.Helper()
	f.shut()
	f.open()
}

// mend retries all failed steps.
func (f *fixture) mend() {
	f.Helper()
	for _, p := range f.pools {
		ended := f.tend(p)
		for ended == nil {
			<-time.After(time.Millisecond)
			ended = f.tend(p)
		}
		<-ended
		if away := p.trouble.Load(); away != nil {
			f.Logf("pool %q: %v", p.name, away.why)
		}
	}
}

// awaits waits until a pool is served.
func (f *fixture) awaits(name string) {
	f.Helper()
	for begun := time.Now(); time.Since(begun) < patience; <-time.After(time.Millisecond) {
		if _, err := f.pool(name); err == nil {
			return
		}
	}
	f.Fatalf("pool %q is not served after %v", name, patience)
}

// in returns the pool of that name.
func (f *fixture) in(name string) *pool {
	f.Helper()
	p, err := f.pool(name)
	must(f, err)
	return p
}

// specIn requests a small volume in a pool.
func specIn(pool, name string) backends.Spec {
	return backends.Spec{
		Name: name, Capacity: backends.CapacityRange{RequiredBytes: 4 << 20}, Parameters: &Parameters{Pool: pool},
		Access: backends.Access{Types: []backends.AccessType{backends.Mount}, Modes: backends.SingleNodeModes()},
	}
}

func (f *fixture) create(pool, name string) *backends.Volume {
	f.Helper()
	v, err := f.Create(context.Background(), specIn(pool, name))
	must(f, err)
	return v
}

func (f *fixture) snapshot(name, volume string) *backends.Snapshot {
	f.Helper()
	s, err := f.CreateSnapshot(context.Background(), backends.SnapshotSpec{Name: name, Volume: volume})
	must(f, err)
	return s
}

// data returns the path of a volume's directory or image, without using the volume.
func (f *fixture) data(handle string) string {
	f.Helper()
	v, err := f.stock.volumes.get(handle)
	must(f, err)
	return v.data()
}

// dir returns a volume's folder.
func (f *fixture) dir(handle string) string { return filepath.Dir(f.data(handle)) }

// use puts a volume in use and returns its path.
func (f *fixture) use(handle string) string {
	f.Helper()
	source, err := f.Source(context.Background(), backends.Attachment{Handle: handle})
	must(f, err)
	switch s := source.(type) {
	case backends.Directory:
		return s.Path
	case backends.Device:
		return s.Path
	}
	f.Fatalf("Source returned %T", source)
	return ""
}

// settle waits until no trash is being removed.
func (f *fixture) settle() {
	f.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, p := range f.served() {
		if err := p.janitor.wait(ctx); err != nil {
			f.Fatalf("pool %q still has trash after %v: %v", p.name, patience, err)
		}
	}
}

// holdsOnly checks that the folders of the pools have only these entries, once trash is removed.
func (f *fixture) holdsOnly(entries ...string) {
	f.Helper()
	f.settle()
	var have []string
	for _, p := range f.served() {
		for _, folder := range folders() {
			list, err := os.ReadDir(p.folder(folder))
			must(f, err)
			for _, entry := range list {
				have = append(have, folder+"/"+entry.Name())
			}
		}
	}
	slices.Sort(have)
	slices.Sort(entries)
	if !slices.Equal(have, entries) {
		f.Errorf("the pools have\n%q\nwant\n%q", have, entries)
	}
}

// promised checks the sum of the promises in all ledgers.
func (f *fixture) promised(want int64) {
	f.Helper()
	f.settle()
	var have int64
	for _, p := range f.served() {
		p.ledger.mu.Lock()
		have += p.ledger.promised
		p.ledger.mu.Unlock()
	}
	if have != want {
		f.Errorf("the ledgers have promised %d bytes, want %d", have, want)
	}
}

func TestDefinition(t *testing.T) {
	d := Definition()
	if d.Name != "local" || d.Summary == "" {
		t.Errorf("the definition is %+v", d)
	}
	for _, target := range []any{d.NewParameters(), d.NewMutable(), d.NewSnapshotParameters()} {
		if err := params.Check(target); err != nil {
			t.Error(err)
		}
	}
	p := d.NewParameters().(*Parameters)
	must(t, params.Decode(map[string]string{}, p))
	if want, err := parametersOf(&Parameters{}); err != nil || *p != want {
		t.Errorf("the defaults are %+v when decoded and %+v without, %v", *p, want, err)
	}
}

// Without a configuration there is no pool whose volumes could fill the disk.
func TestDefaultPools(t *testing.T) {
	f := newFixture(t)
	f.shut()
	f.options.Config = patient()
	f.open()
	p := f.in(string(image))
	if want := filepath.Join(f.dataDir, "pools", "image"); len(f.pools) != 1 || p.storage.name != image || p.path != want {
		t.Errorf("there are %d pools, %q is a %q in %s; want one of images in %s", len(f.pools), p.name, p.storage.name,
			p.path, want)
	}
	v, err := f.Create(t.Context(), backends.Spec{Name: "without parameters"})
	must(t, err)
	if info, err := os.Stat(f.data(v.Handle)); err != nil || info.Size() != defaultSize || v.CapacityBytes != defaultSize {
		t.Errorf("the volume is %+v, %v; want an image of %d bytes", v, err, defaultSize)
	}
}

func TestImagesHoldTheirFilesystem(t *testing.T) {
	f := newFixture(t)
	spec := backends.Spec{Name: "small", Capacity: backends.CapacityRange{RequiredBytes: 1 << 20},
		LeastDeviceBytes: 300 << 20}
	for of, want := range map[poolType]int64{directory: 1 << 20, image: 300 << 20} {
		spec.Name, spec.Parameters = string(of), &Parameters{Pool: string(of)}
		v, err := f.Create(t.Context(), spec)
		must(t, err)
		if v.CapacityBytes != want {
			t.Errorf("the volume of pool %s has %d bytes, want %d", of, v.CapacityBytes, want)
		}
	}
	spec.Name, spec.Parameters, spec.Capacity.LimitBytes = "limited", &Parameters{Pool: string(image)}, 200<<20
	_, err := f.Create(t.Context(), spec)
	hasKind(t, "Create of an image that its filesystem does not fit", err, backends.OutOfRange, "314572800")
}

// Without a required size, an image has the size of its source or the default, not only what its filesystem needs.
func TestImagesWithoutARequiredSize(t *testing.T) {
	f := newFixture(t)
	small, err := f.Create(t.Context(), backends.Spec{Name: "source", Parameters: &Parameters{Pool: string(image)},
		Capacity: backends.CapacityRange{RequiredBytes: 8 << 20}})
	must(t, err)
	for name, test := range map[string]struct {
		limit, least, want int64
		source             string
	}{
		"of any size":             {least: 2 << 20, want: defaultSize},
		"limited":                 {limit: 5 << 20, least: 2 << 20, want: 5 << 20},
		"a clone":                 {least: 2 << 20, want: 8 << 20, source: small.Handle},
		"a clone that must grow":  {least: 9 << 20, want: 9 << 20, source: small.Handle},
		"a clone below its limit": {limit: 1 << 30, least: 2 << 20, want: 8 << 20, source: small.Handle},
	} {
		spec := backends.Spec{Name: name, Parameters: &Parameters{Pool: string(image)}, LeastDeviceBytes: test.least,
			Capacity: backends.CapacityRange{LimitBytes: test.limit}}
		create := func() (*backends.Volume, error) { return f.Create(t.Context(), spec) }
		if test.source != "" {
			create = func() (*backends.Volume, error) { return f.Clone(t.Context(), spec, test.source) }
		}
		v, err := create()
		must(t, err)
		if v.CapacityBytes != test.want {
			t.Errorf("%s: the volume has %d bytes, want %d", name, v.CapacityBytes, test.want)
		}
	}
}

func TestOnlyEnginesWithImagesOfferGroups(t *testing.T) {
	for of, want := range map[poolType]bool{directory: false, image: true} {
		options := newFixture(t, PoolConfig{Name: "other", Type: "image"}).options
		options.DataDir = filepath.Join(t.TempDir(), "data")
		options.Config = patient(PoolConfig{Name: "only", Type: string(of)})
		instance, err := open(t.Context(), options)
		must(t, err)
		if have := backends.Resolve(instance.Controller, instance.Node).Group != nil; have != want {
			t.Errorf("a %s pool offers groups: %t, want %t", of, have, want)
		}
		must(t, backendtest.Close(t.Context(), instance))
	}
}

// everything lists all paths below a directory.
func everything(tb testing.TB, dir string) []string {
	tb.Helper()
	var paths []string
	must(tb, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		paths = append(paths, fmt.Sprintf("%s %s", path, entry.Type()))
		return nil
	}))
	return paths
}
