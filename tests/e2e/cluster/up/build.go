package up

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/programs"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

// Build builds everything that a cluster needs, and starts nothing.
func Build(ctx context.Context, o Options) error {
	_, err := o.make(ctx)
	return err
}

// BuildPrograms builds every program of a cluster and of the official tests, and no image. The first build takes the
// most time of all steps. It needs only Go and a C compiler, so that it can run beside other work.
func BuildPrograms(ctx context.Context, o Options) error {
	builder, err := programs.NewBuilder(ctx, o.tools(), &store.Store{Dir: o.Store, Out: o.Out, Label: "cluster"})
	if err != nil {
		return err
	}
	for _, p := range programs.All() {
		if _, err := builder.Build(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// BuildSuite builds the programs that run the official end-to-end tests, e2e.test and ginkgo, and returns their paths
// by name.
func BuildSuite(ctx context.Context, o Options) (map[string]string, error) {
	entries := &store.Store{Dir: o.Store, Out: o.Out, Label: "cluster"}
	builder, err := programs.NewBuilder(ctx, o.tools(), entries)
	if err != nil {
		return nil, err
	}
	built := map[string]string{}
	for _, p := range programs.Suite() {
		if built[p.Name], err = builder.Build(ctx, p); err != nil {
			return nil, err
		}
	}
	folder, err := linked(ctx, entries, built)
	if err != nil {
		return nil, err
	}
	for name := range built {
		built[name] = filepath.Join(folder, name)
	}
	return built, nil
}

// linked returns a folder of links with the programs' plain names: ginkgo runs only files named *.test.
func linked(ctx context.Context, entries *store.Store, built map[string]string) (string, error) {
	key, err := store.NewKey(slices.Sorted(maps.Values(built))...).String()
	if err != nil {
		return "", err
	}
	return entries.Make(ctx, store.Item{Name: "suite", Key: key,
		Make: func(_ context.Context, path string, _ *store.Progress) error {
			if err := os.Mkdir(path, 0o755); err != nil {
				return err
			}
			for name, program := range built {
				if err := os.Symlink(program, filepath.Join(path, name)); err != nil {
					return err
				}
			}
			return nil
		}})
}

// tools returns the folder of the module that pins the versions of the programs.
func (o Options) tools() string { return filepath.Join(o.Tree, "tests", "e2e", "cluster", "tools") }
