package driver

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/dirlock"
)

func TestSocketPath(t *testing.T) {
	for endpoint, want := range map[string]string{
		"unix:///run/csi.sock": "/run/csi.sock", "unix:/run/csi.sock": "/run/csi.sock", "/run/csi.sock": "/run/csi.sock",
	} {
		if got, err := socketPath(endpoint); err != nil || got != want {
			t.Errorf("socketPath(%q) = %q, %v", endpoint, got, err)
		}
	}
	for _, endpoint := range []string{
		"", "unix://", "csi.sock", "tcp://127.0.0.1:1", "/run/../etc/x", "unix://run/x", "/a\x00b",
		"/" + strings.Repeat("a", 200),
	} {
		if got, err := socketPath(endpoint); !backends.Is(err, backends.Invalid) {
			t.Errorf("socketPath(%q) = %q, %v; want Invalid", endpoint, got, err)
		}
	}
}

func TestListenReplacesOnlyAStaleSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	// A killed process leaves behind the file of a socket that nobody serves.
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	first, err := Listen(t.Context(), socket)
	if err != nil {
		t.Fatalf("a stale socket stands in the way: %v", err)
	}
	if _, err := Listen(t.Context(), socket); !backends.Is(err, backends.InUse) {
		t.Errorf("a socket that is served was taken over: %v", err)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket's mode is %v, %v", info.Mode(), err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestListenKeepsOtherFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), file); !backends.Is(err, backends.InUse) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "data" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

func TestListenMakesTheDirectory(t *testing.T) {
	listener, err := Listen(t.Context(), filepath.Join(t.TempDir(), "run", "s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}

// If several processes find one stale socket at the same time, one of them serves it.
func TestListenAlone(t *testing.T) {
	for range 200 {
		socket := filepath.Join(t.TempDir(), "s")
		left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		left.SetUnlinkOnClose(false)
		if err := left.Close(); err != nil {
			t.Fatal(err)
		}
		listeners, start := make(chan net.Listener), make(chan struct{})
		for range 4 {
			go func() {
				<-start
				listener, err := Listen(t.Context(), socket)
				if err != nil {
					listener = nil
				}
				listeners <- listener
			}()
		}
		close(start)
		var serving []net.Listener
		for range 4 {
			if listener := <-listeners; listener != nil {
				serving = append(serving, listener)
			}
		}
		if len(serving) != 1 {
			t.Fatalf("%d of 4 serve one socket", len(serving))
		}
		if err := serving[0].Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A start that waits for a directory's lock ends with its context, and says so.
func TestListenEndsWithContext(t *testing.T) {
	dir := t.TempDir()
	locked, err := dirlock.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer locked.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = Listen(ctx, filepath.Join(dir, "s"))
	if !errors.Is(err, context.Canceled) || !backends.Is(err, backends.Busy) {
		t.Errorf("got %v, want Busy and the end of the context", err)
	}
}

// A process removes the socket that it made, and not one that another process made at the path since.
func TestCloseKeepsTheSocketOfAnother(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	first, err := Listen(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	second, err := Listen(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatalf("the second process serves the endpoint, and it cannot be reached: %v", err)
	}
	if err := errors.Join(connection.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}
