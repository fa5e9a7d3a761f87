package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
)

func TestConformance(t *testing.T) {
	for _, test := range []struct {
		of poolType
		as backends.AccessType
	}{{directory, backends.Mount}, {image, backends.Mount}, {image, backends.Block}} {
		t.Run(string(test.of)+" as "+string(test.as), func(t *testing.T) {
			backendtest.Run(t, conformanceHarness(test.of, test.as))
		})
	}
}

// conformanceHarness returns the harness of a backend with one pool.
func conformanceHarness(of poolType, as backends.AccessType) backendtest.Harness {
	harness := backendtest.Over(Definition(), func(_ testing.TB, o *backends.Options) {
		o.Config = patient(PoolConfig{Name: "tested", Type: string(of), Capacity: "4Gi"})
	})
	harness.Nodes = []string{"node-a"}
	harness.Reserves = true
	harness.Spec = func(name string) backends.Spec {
		return backends.Spec{
			Name:       name,
			Capacity:   backends.CapacityRange{RequiredBytes: 2 << 20},
			Parameters: &Parameters{Pool: "tested"},
			Access:     backends.Access{Types: []backends.AccessType{as}, Modes: backends.SingleNodeModes()},
		}
	}
	harness.SnapshotParameters = &SnapshotParameters{}
	retain := retainData
	harness.Modifications = []backendtest.Modification{{Value: &Mutable{OnDelete: &retain}}}
	harness.Lose = losses()
	harness.Apart = apart
	harness.Damage = func(tb testing.TB, instance *backends.Instance, handle string) {
		if err := os.RemoveAll(filepath.Join(engineOf(instance).pools[0].folder(volumesFolder), handle,
			of.storage().data)); err != nil {
			tb.Fatal(err)
		}
	}
	return harness
}

// apart opens a backend with images in two pools.
func apart(tb testing.TB) (instance *backends.Instance, volumes []string) {
	instance = backendtest.Over(Definition(), func(_ testing.TB, o *backends.Options) {
		o.Config = patient(PoolConfig{Name: "one", Type: "image"}, PoolConfig{Name: "two", Type: "image"})
	}).Open(tb)
	for _, pool := range []string{"one", "two"} {
		v, err := instance.Controller.Create(tb.Context(), specIn(pool, "in "+pool))
		must(tb, err)
		volumes = append(volumes, v.Handle)
	}
	return instance, volumes
}

// losses returns ways to take the pool of conformanceHarness away.
func losses() map[string]backendtest.Loss {
	nothing := func() {}
	return map[string]backendtest.Loss{
		"an empty configuration": func(_ testing.TB, o *backends.Options) func() {
			o.Config = patient()
			return nothing
		},
		"a configuration with other pools": func(_ testing.TB, o *backends.Options) func() {
			o.Config = patient(PoolConfig{Name: "other", Type: "directory"})
			return nothing
		},
		"a pool that is not mounted": func(tb testing.TB, o *backends.Options) func() {
			path := filepath.Join(o.DataDir, poolsFolder, "tested")
			must(tb, os.Rename(path, path+".away"))
			return func() {
				must(tb, os.RemoveAll(path))
				must(tb, os.Rename(path+".away", path))
			}
		},
		"a pool that is left out and not mounted": func(tb testing.TB, o *backends.Options) func() {
			o.Config = patient(PoolConfig{Name: "other", Type: "image"})
			path := filepath.Join(o.DataDir, poolsFolder, "tested")
			must(tb, os.Rename(path, path+".away"))
			return func() { must(tb, os.Rename(path+".away", path)) }
		},
	}
}

func engineOf(instance *backends.Instance) *engine {
	if g, ok := instance.Controller.(*grouping); ok {
		return g.engine
	}
	return instance.Controller.(*engine)
}
