package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Numbers that mean nothing are refused.
func TestFlagsThatMeanNothing(t *testing.T) {
	dir := t.TempDir()
	refused(t, "--shutdown-grace is -5s", "standalone", "--shutdown-grace=-5s", "--data-dir="+dir)
	refused(t, "--trace-ratio is NaN", "standalone", "--trace-ratio=NaN", "--data-dir="+dir)
}

// A second process is refused before it opens the backend: the first one's volumes stay.
func TestSecondProcessChangesNothing(t *testing.T) {
	dir := t.TempDir()
	socket, data := filepath.Join(dir, "s"), filepath.Join(dir, "data")
	t.Setenv("CSI_ENDPOINT", "unix://"+socket)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		root := command()
		root.SetArgs([]string{"standalone", "--backend=memory", "--data-dir=" + data})
		ended <- root.ExecuteContext(ctx)
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the first process ended with %v", err)
		}
	}()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	client := csi.NewControllerClient(conn)
	made, err := client.CreateVolume(ask, &csi.CreateVolumeRequest{Name: "one",
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}}}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "serves the endpoint", "standalone", "--backend=memory", "--data-dir="+data)
	refused(t, "another process uses "+data, "standalone", "--backend=memory", "--data-dir="+data,
		"--endpoint="+filepath.Join(dir, "other"))
	get := &csi.ControllerGetVolumeRequest{VolumeId: made.GetVolume().GetVolumeId()}
	if _, err := client.ControllerGetVolume(ask, get); err != nil {
		t.Errorf("the volume after a second process was refused: %v", err)
	}
}
