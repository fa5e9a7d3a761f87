package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Each role serves Identity and its own service only. The plugin's capabilities are the same in all processes: the sum
// of theirs (CSI, GetPluginCapabilities).
func TestRoles(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("shares: [{name: a, server: s, share: /x, topology: {zone: a}}]"),
		0o600); err != nil {
		t.Fatal(err)
	}
	const plugin = "CONTROLLER_SERVICE GROUP_CONTROLLER_SERVICE VOLUME_ACCESSIBILITY_CONSTRAINTS " +
		"SNAPSHOT_ACCESSIBILITY_CONSTRAINTS ONLINE"
	for role, want := range map[string]struct{ controller, node codes.Code }{
		"controller": {codes.OK, codes.Unimplemented},
		"node":       {codes.Unimplemented, codes.OK},
		"standalone": {codes.OK, codes.OK},
	} {
		t.Run(role, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "csi.sock")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				root := command()
				args := []string{role, "--backend=nfs", "--config=" + config, "--endpoint=unix://" + socket,
					"--data-dir=" + t.TempDir()}
				if role != "controller" {
					args = append(args, "--topology=zone=a")
				}
				root.SetArgs(args)
				ended <- root.ExecuteContext(ctx)
			}()
			defer func() {
				cancel()
				if err := <-ended; err != nil {
					t.Errorf("it ended with %v", err)
				}
			}()
			conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ask, stop := context.WithTimeout(ctx, 2*time.Minute)
			defer stop()
			answer, err := csi.NewIdentityClient(conn).GetPluginCapabilities(ask, &csi.GetPluginCapabilitiesRequest{},
				grpc.WaitForReady(true))
			if err != nil {
				t.Fatal(err)
			}
			var says []string
			for _, c := range answer.GetCapabilities() {
				if service := c.GetService(); service != nil {
					says = append(says, service.GetType().String())
				} else {
					says = append(says, c.GetVolumeExpansion().GetType().String())
				}
			}
			if got := strings.Join(says, " "); got != plugin {
				t.Errorf("it says that the plugin can %s, want %s", got, plugin)
			}
			_, err = csi.NewControllerClient(conn).ControllerGetCapabilities(ask, &csi.ControllerGetCapabilitiesRequest{})
			if code := status.Code(err); code != want.controller {
				t.Errorf("the controller service answers %s, want %s", code, want.controller)
			}
			_, err = csi.NewNodeClient(conn).NodeGetInfo(ask, &csi.NodeGetInfoRequest{})
			if code := status.Code(err); code != want.node {
				t.Errorf("the node service answers %s, want %s", code, want.node)
			}
		})
	}
}

func TestInseparableBackends(t *testing.T) {
	for _, role := range []string{"controller", "node"} {
		root := command()
		root.SetArgs([]string{role, "--backend=local", "--data-dir=" + t.TempDir()})
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "standalone") {
			t.Errorf("%s of local volumes: %v, want a failure that says what to use", role, err)
		}
	}
	refused(t, "node-id", "controller", "--node-id=x")
	refused(t, "--max-open-files is -1", "standalone", "--max-open-files=-1", "--data-dir="+t.TempDir())
	refused(t, "--max-open-files is 10", "controller", "--max-open-files=10", "--data-dir="+t.TempDir())
	refused(t, "--max-open-files is 10", "disks", "--max-open-files=10")
}

// A topology that the backend does not use would be ignored silently.
func TestPlaces(t *testing.T) {
	refused(t, "the node have that label", "node", "--topology=zone=", "--data-dir="+t.TempDir())
	refused(t, "zone=a", "node", "--topology=zone=a", "--data-dir="+t.TempDir())
	refused(t, "zone=a", "standalone", "--backend=memory", "--topology=zone=a", "--data-dir="+t.TempDir())
	for _, id := range []string{strings.Repeat("n", 64), "a:b", "node-", "n\xff"} { // No kubelet turns these into a label.
		refused(t, "a node's label can have", "standalone", "--backend=local", "--node-id="+id, "--data-dir="+t.TempDir())
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("shares: [{name: a, server: s, share: /x, topology: {zone: a}}]"),
		0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, "--topology zone=", "node", "--config="+config, "--data-dir="+t.TempDir())
}

// refused runs a command that must fail and mention something.
func refused(t *testing.T, mention string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // A command that is not refused serves until then.
	defer cancel()
	root := command()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), mention) {
		t.Errorf("stowage %v: got %v, want a failure that mentions %q", args, err, mention)
	}
}
