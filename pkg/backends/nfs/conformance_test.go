package nfs

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
)

// testServer and testShare are the stand-in's server and share.
const (
	testServer = "nfs.test"
	testShare  = "/export"
)

// serve creates a directory that stands for servers with one share.
func serve(tb testing.TB) (servers standin.Servers, root string) {
	tb.Helper()
	dir := tb.TempDir()
	root = filepath.Join(dir, testServer, testShare)
	if err := os.MkdirAll(root, 0o755); err != nil {
		tb.Fatal(err)
	}
	return standin.Servers(dir), root
}

func TestConformance(t *testing.T) {
	backendtest.Run(t, conformance(specOf, func(testing.TB, string, *backends.Options) {}))
}

// conformance returns the suite's harness: the backend with the options, which creates the volumes of the specs.
func conformance(spec func(name string) backends.Spec,
	options func(tb testing.TB, root string, o *backends.Options)) backendtest.Harness {
	// The stand-in reads the share's place from here, because each check needs an empty one.
	moving := &movingServers{}
	harness := backendtest.Over(DefinitionOver(moving), func(tb testing.TB, o *backends.Options) {
		moving.move(serve(tb))
		// It lists before it creates anything.
		o.Config.(*Config).Shares = []ShareConfig{{Name: "conformance", Server: testServer, Share: testShare}}
		options(tb, *moving.root.Load(), o)
	})
	harness.Nodes = []string{"node-a"}
	harness.Exports, harness.NamesStorage = true, true
	harness.Spec = spec
	harness.SnapshotParameters = &SnapshotParameters{}
	harness.Apart = func(tb testing.TB) (instance *backends.Instance, volumes []string) {
		instance = harness.Open(tb)
		if err := os.MkdirAll(filepath.Join(filepath.Dir(*moving.root.Load()), "other"), 0o755); err != nil {
			tb.Fatal(err)
		}
		here, there := spec("here"), spec("there")
		there.Parameters = &Parameters{Server: testServer, Share: "/other"}
		for _, one := range []backends.Spec{here, there} {
			v, err := instance.Controller.Create(tb.Context(), one)
			if err != nil {
				tb.Fatal(err)
			}
			volumes = append(volumes, v.Handle)
		}
		return instance, volumes
	}
	retain := retainData
	harness.Modifications = []backendtest.Modification{{Value: &Mutable{OnDelete: &retain}}}
	harness.Damage = func(tb testing.TB, instance *backends.Instance, handle string) {
		v, err := instance.Controller.Get(tb.Context(), handle)
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(*moving.root.Load(), v.Attributes["subDir"])); err != nil {
			tb.Fatal(err)
		}
	}
	return harness
}

// movingServers is a stand-in whose directory changes from check to check. Background work of an earlier check's driver
// may still ask for it.
type movingServers struct {
	now  atomic.Pointer[standin.Servers]
	root atomic.Pointer[string]
}

func (m *movingServers) move(servers standin.Servers, root string) {
	m.now.Store(&servers)
	m.root.Store(&root)
}

func (m *movingServers) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	return m.now.Load().Open(ctx, address)
}

func (m *movingServers) Source(ctx context.Context, address export.Address, dir string) (backends.Source, error) {
	return m.now.Load().Source(ctx, address, dir)
}

func (m *movingServers) SameServer(ctx context.Context, one, other string) bool {
	return m.now.Load().SameServer(ctx, one, other)
}

// specOf returns the spec of a small volume.
func specOf(name string) backends.Spec {
	return backends.Spec{
		Name: name, Capacity: backends.CapacityRange{RequiredBytes: 2 << 20},
		Parameters: &Parameters{Server: testServer, Share: testShare},
		Access:     access(""),
	}
}
