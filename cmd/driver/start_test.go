package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stowage-csi/stowage/pkg/driver"
)

// Numbers outside their ranges are refused.
func TestFlagsThatMeanNothing(t *testing.T) {
	dir := t.TempDir()
	refused(t, "--shutdown-grace is -5s", "standalone", "--shutdown-grace=-5s", "--data-dir="+dir)
	refused(t, "--node-id has 257 bytes: CSI allows 256 at most", "standalone",
		"--node-id="+strings.Repeat("n", driver.MaxNodeID+1), "--data-dir="+dir)
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
	ask, stop := context.WithTimeout(ctx, 2*time.Minute)
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

// plant creates a data directory with a file in it. The returned function fails the test if the file has changed.
func plant(t *testing.T, name string) (dir string, untouched func(what string)) {
	t.Helper()
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, func(what string) {
		t.Helper()
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != "kept" {
			t.Errorf("%s: the file in the data directory is %q, %v", what, text, err)
		}
	}
}

// TestRefusedStartChangesNothing: the backend is opened only after all flags are valid and all sockets are open. At
// that point the backend memory empties its directory.
func TestRefusedStartChangesNothing(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("zone: ''"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := filepath.Join(t.TempDir(), "two.yaml")
	if err := os.WriteFile(two, []byte("zone: a\n---\nzone: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, says := range map[string]string{
		"--config=" + two:                                "second document",
		"--otlp-endpoint=collector:4317":                 "--otlp-endpoint",
		"--otlp-endpoint=http://[::1":                    "--otlp-endpoint",
		"--trace-ratio=2":                                "--trace-ratio",
		"--http-endpoint=127.0.0.1:http:1":               "--http-endpoint",
		"--http-endpoint=" + taken.Addr().String():       "--http-endpoint",
		"--endpoint=csi.sock":                            "--endpoint",
		"--log-format=xml":                               "--log-format",
		"--shutdown-grace=-1s":                           "--shutdown-grace",
		"--drain-grace=-1s":                              "--drain-grace is -1s",
		"--drain-grace=1s":                               "--drain-grace needs --node-name",
		"-v=-9":                                          "-v is -9",
		"--max-concurrent-formats=0":                     "--max-concurrent-formats",
		"--topology=memory.csi.stowage.dev/zone=another": "zone=another",
		"--config=" + config:                             "zone is empty",
		"--config=" + config + ".none":                   "--config",
	} {
		dir, untouched := plant(t, "memory-backend/vol-1/data")
		socket := filepath.Join(t.TempDir(), "s")
		refused(t, says, "standalone", "--backend=memory", "--data-dir="+dir, "--endpoint="+socket, flag)
		untouched(flag)
		if _, err := os.Lstat(socket); err == nil {
			t.Errorf("%s: the socket is still there", flag)
		}
	}
}

// TestRefusedDisksChangeNothing: the same for the process that opens disks, which keeps records and links.
func TestRefusedDisksChangeNothing(t *testing.T) {
	config := filepath.Join(t.TempDir(), "disks.yaml")
	if err := os.WriteFile(config, []byte("mountPoints: [{paths: [/nowhere/*]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := filepath.Join(t.TempDir(), "two.yaml")
	if err := os.WriteFile(two, []byte("mountPoints: [{paths: [/nowhere/*]}]\n---\ndevices: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, says := range map[string]string{
		"--config=" + two:              "second document",
		"--endpoint=disks.sock":        "endpoint",
		"--endpoint=" + config:         "endpoint",
		"--rescan=1ms":                 "--rescan",
		"--link-dir=links":             "--link-dir",
		"--config=" + config + ".none": "--config",
	} {
		dir, untouched := plant(t, "links/disk-1")
		refused(t, says, "disks", "--config="+config, "--data-dir="+dir,
			"--endpoint="+filepath.Join(t.TempDir(), "s"), flag)
		untouched(flag)
		if left, err := os.ReadDir(dir); err != nil || !slices.Equal(namesOf(left), []string{"links"}) {
			t.Errorf("%s: the data directory has %v (%v), want links only", flag, left, err)
		}
	}
}

func namesOf(entries []os.DirEntry) []string {
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// TestTwoControllersOfOneDirectory: the second controller is refused. It would answer by the first one's name, and
// replace its record of the shares. Neither of them would reject a call that the other is serving. A node beside them
// has its own state.
func TestTwoControllersOfOneDirectory(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	run := func(role, socket string) (stop func()) {
		endpoint := "unix://" + filepath.Join(dir, socket)
		return started(t, endpoint, role, "--backend=nfs", "--data-dir="+data, "--endpoint="+endpoint)
	}
	stop := run("controller", "first")
	for _, role := range []string{"controller", "standalone"} {
		refused(t, "another process uses "+data, role, "--backend=nfs", "--data-dir="+data,
			"--endpoint="+filepath.Join(dir, "second"))
	}
	defer run("node", "node")()
	stop()
	run("controller", "third")() // The lock ended with the first.
}

// TestControllerThatCanKeepNothing: if the data directory cannot be written, the controller keeps nothing, and still
// serves.
func TestControllerThatCanKeepNothing(t *testing.T) {
	endpoint := "unix://" + filepath.Join(t.TempDir(), "s")
	started(t, endpoint, "controller", "--backend=nfs", "--data-dir=/proc", "--endpoint="+endpoint)()
}
