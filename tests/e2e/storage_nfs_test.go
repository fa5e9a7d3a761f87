package e2e

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/backends/nfs"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
	"github.com/stowage-csi/stowage/tests/inprocess"
)

// server is the name of the simulated NFS server.
const server = "standin"

// startNFS runs the driver in this process, over directories that simulate a server, and its sidecars in the cluster.
func startNFS(t *testing.T) *storage {
	c := cluster(t)
	servers, err := os.MkdirTemp(*data, "servers-") //nolint:usetesting // on a filesystem that has immutable directories
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(servers) }) // It is removed with the cluster.
	sockets := filepath.Join(*data, "nodes", c.Node, "var/lib/stowage-nfs")
	if err := os.MkdirAll(sockets, 0o755); err != nil {
		t.Fatal(err)
	}
	mounter := &busyServer{Servers: standin.Servers(servers)}
	definition := nfs.DefinitionOver(mounter)
	inprocess.Start(t, inprocess.Options{Definition: &definition, SocketDir: sockets, Log: t.Output()})
	// The sidecars are neither root nor of its group.
	if err := os.Chmod(filepath.Join(sockets, "csi.sock"), 0o666); err != nil {
		t.Fatal(err)
	}
	deploy(t, c, "nfs")
	return &storage{
		parameters: mounter.export, grain: 1, refused: nfsRefuses(),
		slow: func(*workload.Space) func() { return mounter.hold() },
		there: func(s *workload.Space, volume *corev1.PersistentVolume) (bool, error) {
			_, err := os.Stat(mounter.path(s, volume.Name))
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			return err == nil, err
		},
		keep: func(s *workload.Space, _ *corev1.PersistentVolume) ([]string, func()) {
			records, err := filepath.Glob(mounter.path(s, ".stowage/*"))
			s.Must(err)
			return []string{server, "operation not permitted"}, immutable(s, records...)
		},
	}
}

func nfsRefuses() map[string]refusal {
	return map[string]refusal{
		"unknown parameter": {
			parameters: map[string]string{"sever": server, "share": "/"},
			says:       []string{`parameter "sever" is not known: did you mean "server"?`},
		},
		"wrong case": {
			parameters: map[string]string{"server": server, "share": "/", "subdir": "x"},
			says:       []string{`parameter "subdir" is not known: did you mean "subDir"`},
		},
		"unknown value": {
			parameters: map[string]string{"server": server, "share": "/", "onDelete": "purge"},
			says:       []string{"onDelete", "purge", "delete", "retain", "archive"},
		},
		"impossible filesystem": {
			parameters: map[string]string{"server": server, "share": "/", fsType: "ext4"},
			says:       []string{`"ext4"`, "NFS server", "nfs4"},
		},
		"no such export": {
			parameters: map[string]string{"server": server, "share": "/nowhere"},
			says:       []string{"/nowhere", "the server exports no such path"},
		},
		"a device": {
			parameters: map[string]string{"server": server, "share": "/"}, change: workload.Block,
			says: []string{`access type "block" is not supported: use mount`},
		},
	}
}

// busyServer is a server that can be slow to let a client mount an export.
type busyServer struct {
	standin.Servers
	free sync.RWMutex
}

// Open opens the export when the server is free.
func (b *busyServer) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	b.free.RLock()
	defer b.free.RUnlock()
	return b.Servers.Open(ctx, address)
}

// hold keeps the server busy until it is released.
func (b *busyServer) hold() (release func()) {
	b.free.Lock()
	return sync.OnceFunc(b.free.Unlock)
}

// export creates the test's own export, and returns the parameters of a class for it.
func (b *busyServer) export(s *workload.Space) map[string]string {
	s.T.Helper()
	s.Must(os.MkdirAll(b.path(s), 0o755))
	return map[string]string{"server": server, "share": "/" + s.Namespace}
}

// path returns a path on the test's export.
func (b *busyServer) path(s *workload.Space, elements ...string) string {
	return filepath.Join(append([]string{string(b.Servers), server, s.Namespace}, elements...)...)
}

// deploy applies the manifests of a backend until the test ends, and waits for its sidecars.
func deploy(t *testing.T, c *workload.Cluster, backend string) {
	t.Helper()
	if _, err := c.Kubectl(t.Context(), "apply", "--kustomize", filepath.Join("deployed", backend)); err != nil {
		t.Fatal(err)
	}
	deployment, namespace := "deployment/stowage-"+backend+"-controller", "--namespace="+deployed.Namespace
	t.Cleanup(func() {
		if _, err := c.Kubectl(context.Background(), "delete", deployment, namespace, "--ignore-not-found"); err != nil {
			t.Error(err)
		}
	})
	if _, err := c.Kubectl(t.Context(), "rollout", "status", deployment, namespace, "--timeout=3m"); err != nil {
		pods, _ := c.Kubectl(t.Context(), "describe", "pods", namespace)
		t.Fatalf("%v\n%s", err, pods)
	}
}
