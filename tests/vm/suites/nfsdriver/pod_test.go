package nfsdriver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// The pods' network: the server has the node's address, and a pod has its own.
const (
	podWord                  = "pod"
	nodeAddress, podAddress  = "10.98.0.1", "10.98.0.2"
	nodeInterface, podsOwn   = "vm-node", "vm-pod"
	reserved, high, networks = "resvport", "noresvport", "/24"
)

// podMain must be called first in TestMain. In the process of the pod it does not return. The pod is root in its own
// network namespace, which needs no privilege, and tries to read the driver's key and a tenant's file.
func podMain() {
	if len(os.Args) != 3 || os.Args[1] != podWord {
		return
	}
	if err := bePod(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "the pod:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func bePod(path string) error {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil { // The network exists now.
		return err
	}
	for _, argv := range [][]string{
		{"link", "set", "lo", "up"}, {"addr", "add", podAddress + networks, "dev", podsOwn}, {"link", "set", podsOwn, "up"},
	} {
		if out, err := exec.CommandContext(context.Background(), "ip", argv...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", argv, err, out)
		}
	}
	for _, version := range []string{"3", "4.2"} {
		for _, port := range []string{reserved, high} {
			fmt.Println(version, port, outcome(steals(version, port, path)))
		}
	}
	return nil
}

func outcome(err error) string {
	if err == nil {
		return "in"
	}
	return "refused: " + strings.ReplaceAll(err.Error(), "\n", " ")
}

// steals mounts a share and reads files that only the driver, and another tenant, may read.
func steals(version, port, path string) error {
	dir, err := os.MkdirTemp("", "pod-")
	if err != nil {
		return err
	}
	kind, options := "nfs4", "vers="+version+",addr="+nodeAddress+",proto=tcp,soft,timeo=30,retrans=1,nosharecache,"+port
	if version == "3" {
		kind, options = "nfs", options+",nolock,mountaddr="+nodeAddress+",mountproto=tcp,mountvers=3"
	}
	if err := unix.Mount(nodeAddress+":"+path, dir, kind, 0, options); err != nil {
		return errors.Join(fmt.Errorf("mount: %w", err), os.Remove(dir))
	}
	for _, file := range []string{share.HomeName + "/key", "tenant/secret"} {
		if _, failed := os.ReadFile(filepath.Join(dir, file)); failed != nil {
			err = failed
		}
	}
	return errors.Join(err, unix.Unmount(dir, 0), os.Remove(dir))
}

// pod returns a pod's results for each version and kind of port.
func (s *site) pod(path string) (outcomes []string) {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), "/proc/self/exe", podWord, path)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS}
	input, err := cmd.StdinPipe()
	s.must(err)
	output, err := cmd.StdoutPipe()
	s.must(err)
	s.must(cmd.Start())
	s.command("ip", "link", "add", nodeInterface, "type", "veth", "peer", "name", podsOwn, "netns",
		fmt.Sprint(cmd.Process.Pid))
	s.command("ip", "addr", "add", nodeAddress+networks, "dev", nodeInterface)
	s.command("ip", "link", "set", nodeInterface, "up")
	_, err = fmt.Fprintln(input, "go")
	s.must(err)
	said, err := io.ReadAll(output)
	s.must(err)
	s.must(cmd.Wait())
	return strings.Split(strings.TrimSpace(string(said)), "\n")
}

func (s *site) command(argv ...string) {
	s.Helper()
	if out, err := exec.CommandContext(s.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		s.Fatalf("%v: %v: %s", argv, err, out)
	}
}

// TestPodIsRefused exports the share as docs/guides/nfs.md says: to nodes' addresses, and to privileged ports. The
// driver works, in the node's network. A pod gets nothing, neither from its own address, nor with its node's address
// from the ports that network address translation gives it. An earlier version of the guide let it read everything.
func TestPodIsRefused(t *testing.T) {
	for name, row := range map[string]struct {
		client  string
		options []string
		in      bool
	}{
		"as the guide says": {nodeAddress, []string{"no_root_squash"}, false},
		"as the guide said": {"*", []string{"no_root_squash", "insecure"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{T: t}
			ctx := context.WithoutCancel(t.Context())
			s.must(nfsd.Clear(ctx))
			path, err := nfsd.Folder()
			s.must(err)
			s.server, err = nfsd.Start(ctx, nfsd.Config{})
			s.must(err)
			t.Cleanup(func() { s.check(s.server.Stop(ctx)) })
			s.must(s.server.Export(ctx, nfsd.Export{Path: path, Client: row.client, Options: row.options}))
			// The node's address exists before the pod does.
			s.command("ip", "link", "add", "vm-address", "type", "dummy")
			// It is gone when the guest ends.
			t.Cleanup(func() { _ = exec.CommandContext(ctx, "ip", "link", "del", "vm-address").Run() })
			s.command("ip", "addr", "add", nodeAddress+"/32", "dev", "vm-address")
			s.command("ip", "link", "set", "vm-address", "up")
			s.works(path)
			for _, outcome := range s.pod(path) {
				t.Log("a pod:", outcome)
				if in := strings.HasSuffix(outcome, " in"); in != row.in {
					t.Errorf("a pod got in: %t, want %t: %s", in, row.in, outcome)
				}
			}
			asNode := steals("4.2", high, path)
			t.Log("a pod as its node, from a port above 1023:", outcome(asNode))
			if in, open := asNode == nil, len(row.options) > 1; in != open {
				t.Errorf("a pod got in as its node: %t, want %t: %v", in, open, asNode)
			}
		})
	}
}

// works takes a volume and a snapshot of it through their lives, and leaves a tenant's file.
func (s *site) works(path string) {
	s.Helper()
	driver := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	defer driver.Stop(s)
	v := newLife(s.T, driver.Conn, "volume", nodeAddress, path)
	s.must(v.upTo(s.Context(), "unpublish"))
	s.must(os.WriteFile(filepath.Join(v.target, "file"), []byte("text"), 0o644))
	s.must(v.patiently(s.Context(), "unpublish", "unstage"))
	made, err := taken(s.Context(), v.controllerClient, &csi.CreateSnapshotRequest{Name: "snapshot", SourceVolumeId: v.id})
	s.must(err)
	s.must(dropped(s.Context(), v.controllerClient, made.GetSnapshot().GetSnapshotId()))
	s.must(v.patiently(s.Context(), "delete"))
	s.must(os.Mkdir(filepath.Join(path, "tenant"), 0o700))
	s.must(os.WriteFile(filepath.Join(path, "tenant", "secret"), []byte("secret"), 0o600))
}
