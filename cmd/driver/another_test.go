package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stowage-csi/stowage/pkg/backends/all"
	"github.com/stowage-csi/stowage/pkg/backends/sample"
)

// TestAnotherBackend checks that one line in the registry is all that a new backend needs: the flag names it, and the
// driver serves it under its own name.
func TestAnotherBackend(t *testing.T) {
	registry := append(all.Registry(), sample.Definition())
	root := standalone(registry)
	if usage := root.Flags().Lookup("backend").Usage; !strings.Contains(usage, " or sample") {
		t.Errorf("the flag --backend is described as %q, want the new backend in it", usage)
	}
	dir := t.TempDir()
	endpoint := "unix://" + filepath.Join(dir, "s")
	stop := startedBy(t, root, endpoint, "--backend=sample", "--data-dir="+filepath.Join(dir, "data"),
		"--endpoint="+endpoint)
	defer stop()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	info, err := csi.NewIdentityClient(conn).GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	if want := sample.Definition().DriverName(); err != nil || info.GetName() != want {
		t.Errorf("the driver is %q, %v; want %q", info.GetName(), err, want)
	}
}
