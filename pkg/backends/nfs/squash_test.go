package nfs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
)

const (
	// squashWord is the argument with which the test's program is the controller of TestSquashedRoot.
	squashWord = "squashed"
	nobody     = 65534
)

// squashed does a controller's work as a user other than root, which is what a server with root_squash makes of it: a volume
// with files of others is made, copied, and deleted.
func squashed(servers string) int {
	instance, err := DefinitionOver(standin.Servers(servers)).Open(context.Background(), backends.Options{
		Driver: "nfs.test", DataDir: filepath.Join(servers, "data"), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	e, ctx := instance.Controller.(*controllerSide), context.Background()
	spec := in("one", "ns/one", deleteData)
	spec.Parameters.(*Parameters).MountPermissions = "0777"
	v, err := e.Create(ctx, spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(servers, testServer, testShare, "ns", "one", "file"), []byte("text"), 0o644)
	}
	if err == nil {
		_, err = e.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	}
	if err == nil {
		_, err = e.Expand(ctx, v.Handle, backends.CapacityRange{RequiredBytes: 4 << 20})
	}
	if err == nil {
		err = os.Chmod(filepath.Join(servers, testServer, testShare, "ns", "one"), 0o500) // as a pod's root may
	}
	if err == nil {
		err = e.Delete(ctx, v.Handle)
	}
	if err == nil {
		err = instance.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestSquashedRoot(t *testing.T) {
	servers, root := serve(t)
	if err := os.MkdirAll(filepath.Join(string(servers), "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, filepath.Join(string(servers), "data")} {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	for dir := string(servers); dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(string(servers), "program")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), program, squashWord, string(servers))
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, Groups: []uint32{}}}
	if output, err := child.CombinedOutput(); err != nil {
		t.Fatalf("the squashed controller: %v\n%s", err, output)
	}
	left, err := os.ReadDir(filepath.Join(root, "ns"))
	if err != nil || len(left) != 0 {
		t.Errorf("after the deletion there is %v, %v; want nothing", left, err)
	}
}
