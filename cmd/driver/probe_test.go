package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stowage-csi/stowage/pkg/driver"
)

// TestProbeAsksTheSocket: the kubelet's probe command succeeds while the driver serves, fails before that, and fails
// within its time if the socket does not answer.
func TestProbeAsksTheSocket(t *testing.T) {
	dir := t.TempDir()
	endpoint := "unix://" + filepath.Join(dir, "s")
	refused(t, "does not answer", "probe", "--endpoint="+endpoint)
	refused(t, "--timeout is 0s", "probe", "--endpoint="+endpoint, "--timeout=0s")
	stop := started(t, endpoint, "standalone", "--backend=memory", "--data-dir="+filepath.Join(dir, "data"),
		"--endpoint="+endpoint)
	root := command()
	root.SetArgs([]string{"probe", "--endpoint=" + endpoint})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Errorf("the driver serves: %v", err)
	}
	stop()
	stuck, err := driver.Listen(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	refused(t, "deadline exceeded", "probe", "--endpoint="+endpoint, "--timeout=20ms")
}

// started runs a driver until it answers at the endpoint. The returned function ends it.
func started(t *testing.T, endpoint string, args ...string) (stop func()) {
	t.Helper()
	return startedBy(t, command(), endpoint, args...)
}

// startedBy is started for another command.
func startedBy(t *testing.T, root *cobra.Command, endpoint string, args ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		root.SetArgs(args)
		ended <- root.ExecuteContext(ctx)
	}()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask, end := context.WithTimeout(ctx, 2*time.Minute)
	defer end()
	if _, err := csi.NewIdentityClient(conn).Probe(ask, &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the driver ended with %v", err)
		}
	}
}
