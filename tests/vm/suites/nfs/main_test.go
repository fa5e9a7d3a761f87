package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/inside"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

func TestMain(m *testing.M) { os.Exit(inside.Main(m)) }

// soft makes a client give up a dead server after a second and a half, instead of never.
const soft = ",soft,timeo=5,retrans=2,retry=0"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a server and stops it at the end of the test.
func start(t *testing.T, config nfsd.Config) *nfsd.Server {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	must(t, nfsd.Clear(ctx))
	server, err := nfsd.Start(ctx, config)
	must(t, err)
	t.Cleanup(func() {
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return server
}

// folder creates a folder on the guest's disk that every user may write to.
func folder(t *testing.T) string {
	t.Helper()
	must(t, os.MkdirAll("/srv", 0o755))
	path, err := os.MkdirTemp("/srv", "export-") //nolint:usetesting // Nobody but root could come to the test's own folder.
	must(t, err)
	must(t, os.Chmod(path, 0o777))
	t.Cleanup(func() {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	})
	return path
}

// mount mounts an export with Debian's own tool, and unmounts it at the end of the test.
func mount(t *testing.T, path, options string) string {
	t.Helper()
	target := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "mount", "-t", "nfs", "-o", options, "127.0.0.1:"+path,
		target).CombinedOutput()
	if err != nil {
		t.Fatalf("mount with %s: %v: %s", options, err, out)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_FORCE|unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return target
}

// limit is far longer than any step takes with an emulated processor.
const limit = 2 * time.Minute

// within runs a function that must return soon, and returns its error.
func within(t *testing.T, what func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- what() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(limit):
		t.Fatalf("it still runs after %v", limit)
		return nil
	}
}

// eventually retries until what succeeds: a soft mount may fail for a while, until its connection is up again.
func eventually(t *testing.T, what func() error) {
	t.Helper()
	begun := time.Now()
	for {
		err := within(t, what)
		if err == nil {
			return
		}
		if time.Since(begun) > limit {
			t.Fatal(err)
		}
	}
}

// write creates a file and waits until the server has it.
func write(path, text string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// holds returns an error if the file does not contain the text.
func holds(path, text string) error {
	found, err := os.ReadFile(path)
	if err == nil && string(found) != text {
		err = fmt.Errorf("%s holds %q, want %q", filepath.Base(path), found, text)
	}
	return err
}
