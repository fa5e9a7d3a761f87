package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// What pods have and nobody serves is not promised once more: they write on. When it is served again it counts as
// before.
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
		for _, kind := range []string{"image", "directory"} {
			t.Run(name+" of type "+kind, func(t *testing.T) {
				mount := testfs.New(t, "ext4", 512)
				one := PoolConfig{Name: "one", Type: "image", Path: filepath.Join(mount, "one")}
				two := PoolConfig{Name: "two", Type: kind, Path: filepath.Join(mount, "two")}
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
