package local

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// The promises to volumes of a pool that is not served are not given to others, because pods still write to them. When
// the pool is served again, they count as before.
func TestUnservedVolumesKeepTheirPromises(t *testing.T) {
	replace := func(f *fixture, path, old, by string) {
		f.Helper()
		text, err := os.ReadFile(path)
		must(f, err)
		if !strings.Contains(string(text), old) {
			f.Fatalf("%s lacks %q", path, old)
		}
		must(f, os.WriteFile(path, []byte(strings.Replace(string(text), old, by, 1)), 0o600))
	}
	cases := map[string]func(f *fixture, pool, dir string, one PoolConfig){
		"a pool that is not configured": func(f *fixture, _, _ string, one PoolConfig) { f.options.Config = patient(one) },
		"a pool that is another": func(f *fixture, pool, _ string, _ PoolConfig) {
			replace(f, filepath.Join(pool, poolFile), `"id": "`, `"id": "X`)
		},
		"a newer record": func(f *fixture, _, dir string, _ PoolConfig) {
			replace(f, filepath.Join(dir, recordFile), `"version": 1`, `"version": 99`)
		},
	}
	for name, harm := range cases {
		for _, of := range []string{"image", "directory"} {
			t.Run(name+" of type "+of, func(t *testing.T) {
				mount := testfs.New(t, "ext4", 512)
				one := PoolConfig{Name: "one", Type: "image", Path: filepath.Join(mount, "one")}
				two := PoolConfig{Name: "two", Type: of, Path: filepath.Join(mount, "two")}
				f := newFixture(t, one, two)
				v, err := f.createOf("two", "v", 300<<20)
				must(t, err)
				before, harmed := f.room("one"), f.options.Config
				f.shut()
				harm(f, two.Path, filepath.Join(two.Path, volumesFolder, v.Handle), one)
				f.open()
				hasKind(t, "Get", second(f.Get(t.Context(), v.Handle)), backends.Unusable)
				_, err = f.createOf("one", "w", 400<<20)
				hasKind(t, "Create", err, backends.Exhausted, "promised")
				must(t, second(f.createOf("one", "small", 50<<20)))
				f.options.Config = harmed
				if name == "a pool that is not configured" {
					f.reopen()
					f.comesTo("one", before-50<<20)
				}
			})
		}
	}
}

// holdup is a log that blocks each warning about a pool until the channel is closed.
type holdup struct {
	pool  string
	until chan struct{}
}

func (h *holdup) Enabled(context.Context, slog.Level) bool { return true }

func (h *holdup) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if r.Level == slog.LevelWarn && a.Key == "path" && filepath.Base(a.Value.String()) == h.pool {
			<-h.until
		}
		return true
	})
	return nil
}

func (h *holdup) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h *holdup) WithGroup(string) slog.Handler { return h }

// A pool that is served while another one on its filesystem is still being opened leaves it the room that it has
// promised.
func TestFirstPoolLeavesRoomToTheNext(t *testing.T) {
	f := newFixture(t, PoolConfig{Name: "one", Type: "directory"}, PoolConfig{Name: "two", Type: "directory"})
	room := f.room("one")
	must(t, second(f.createOf("two", "v", room/2)))
	f.shut()
	log := &holdup{pool: "two", until: make(chan struct{})}
	letGo := sync.OnceFunc(func() { close(log.until) })
	defer letGo()
	f.options.Log = slog.New(log)
	// Stimulus: the start does not wait for a pool that is held up.
	f.options.Config.(*Config).Limits.Open = time.Millisecond
	f.open()
	f.awaits("one")
	hasKind(t, "Create in the other", second(f.createOf("two", "w", 1)), backends.Unavailable, "still being opened")
	hasKind(t, "Create", second(f.createOf("one", "w", room/4*3)), backends.Exhausted, "promised")
	must(t, second(f.createOf("one", "small", room/4)))
	letGo()
	f.awaits("two")
	if owed := f.disks.unservedOn(f.in("one").ledger.disk.id); owed != 0 {
		t.Errorf("all are served, and %d bytes count as those of others", owed)
	}
	f.promised(room/2 + room/4)
}

// A pool that is no longer configured keeps its room even if it can only be read in part.
func TestLeftPoolThatCannotBeReadKeepsItsRoom(t *testing.T) {
	f := newFixture(t, PoolConfig{Name: "one", Type: "image"}, PoolConfig{Name: "two", Type: "image"})
	v := f.create("two", "v")
	g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}})
	must(t, err)
	record := filepath.Join(f.in("two").entry(groupsFolder, g.Handle), recordFile)
	f.shut()
	must(t, errors.Join(os.Remove(record), os.Mkdir(record, 0o700)))
	f.options.Config = patient(PoolConfig{Name: "one", Type: "image"})
	f.open()
	if owed := f.disks.unservedOn(f.in("one").ledger.disk.id); owed != 2*(4<<20) {
		t.Errorf("%d bytes are kept for it, want those of a volume and a snapshot", owed)
	}
}

// In a directory pool that is no longer configured, only the volumes have promises.
func TestLeftDirectoriesOweWhatVolumesWerePromised(t *testing.T) {
	one, two := PoolConfig{Name: "one", Type: "directory"}, PoolConfig{Name: "two", Type: "directory"}
	f := newFixture(t, one, two)
	v, err := f.createOf("two", "v", 6<<20)
	must(t, err)
	f.snapshot("s", v.Handle)
	f.shut()
	f.options.Config = patient(one)
	f.open()
	if owed := f.disks.unservedOn(f.in("one").ledger.disk.id); owed != 6<<20 {
		t.Errorf("%d bytes are kept for it, want those of the volume", owed)
	}
}

// A pool that was recreated in place under another name counts with its contents, and its predecessor with nothing.
func TestPoolInThePlaceOfAnotherCountsOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool")
	f := newFixture(t, PoolConfig{Name: "one", Type: "image", Path: path}, PoolConfig{Name: "other", Type: "image"})
	f.shut()
	must(t, os.RemoveAll(path))
	f.options.Config = patient(PoolConfig{Name: "two", Type: "image", Path: path},
		PoolConfig{Name: "other", Type: "image"})
	f.open()
	f.create("two", "v")
	f.reopen()
	if owed := f.disks.unservedOn(f.in("two").ledger.disk.id); owed != 0 {
		t.Errorf("%d bytes are owed by pools that are not served, and all are", owed)
	}
}
