package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/dirlock"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// maxSocketPath is the longest path of a unix socket (unix(7): sun_path has 108 bytes with its NUL).
const maxSocketPath = 107

// socketPath parses an endpoint: unix:///path, unix:/path or a bare absolute path. A CSI driver serves a unix socket
// only: the right to open the socket's file authenticates its callers.
func socketPath(endpoint string) (string, error) {
	text := endpoint
	if rest, ok := strings.CutPrefix(endpoint, "unix:"); ok {
		text = strings.TrimPrefix(rest, "//")
	}
	clean, err := safepath.Absolute(text)
	if err != nil {
		return "", backends.Errorf(backends.Invalid, "the endpoint %q is not usable: give unix:///absolute/path (%w)",
			endpoint, err)
	}
	if len(clean) > maxSocketPath {
		return "", backends.Errorf(backends.Invalid, "the endpoint %q has %d bytes: a socket's path has at most %d", endpoint,
			len(clean), maxSocketPath)
	}
	return clean, nil
}

// CheckEndpoint refuses an endpoint that Listen could not open wherever it is called. Kinds: Invalid.
func CheckEndpoint(endpoint string) error {
	_, err := socketPath(endpoint)
	return err
}

// Listen opens the socket that an endpoint names, and creates its directory if needed. It replaces a socket that a
// killed process left behind, but not one that is being served. Closing the listener removes the socket, unless another
// process has made one in its place.
//
// Kinds: Invalid for the endpoint; InUse when something else is there.
func Listen(ctx context.Context, endpoint string) (net.Listener, error) {
	socket, err := socketPath(endpoint)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "the directory of the endpoint %q cannot be made: %w", endpoint,
			err)
	}
	// Two processes that find the same stale socket would both remove it, and one would remove the other's new socket.
	alone, err := lockSoon(ctx, filepath.Dir(socket))
	if err != nil {
		return nil, backends.Errorf(backends.Busy, "the endpoint %q cannot be opened while its directory is locked: %w",
			endpoint, err)
	}
	defer func() { _ = alone.Close() }() // It was only locked.
	if err := clearStale(ctx, socket); err != nil {
		return nil, err
	}
	listener, err := listenAt(socket)
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "the endpoint %q cannot be opened: %w", endpoint, err)
	}
	// Group access admits a sidecar of another user in the same pod (fsGroup), and nobody else.
	if err := os.Chmod(socket, 0o660); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// lockTime is how long a start waits for other drivers that open endpoints in the same directory.
const lockTime = 5 * time.Second

// lockSoon locks a directory as soon as its current holders, which keep it only briefly, release it. Kinds: Busy.
func lockSoon(ctx context.Context, dir string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	for {
		locked, err := dirlock.Lock(dir)
		if !backends.Is(err, backends.Busy) {
			return locked, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", err, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// clearStale removes the socket of a process that is gone.
func clearStale(ctx context.Context, socket string) error {
	info, err := os.Lstat(socket)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return backends.Errorf(backends.Unavailable, "the endpoint %q cannot be looked at: %w", socket, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return backends.Errorf(backends.InUse, "the endpoint %q is there and is not a socket: remove it or choose another",
			socket)
	}
	dialer := net.Dialer{Timeout: time.Second}
	connection, err := dialer.DialContext(ctx, "unix", socket)
	if err == nil {
		return errors.Join(connection.Close(),
			backends.Errorf(backends.InUse, "another process serves the endpoint %q: stop it or choose another", socket))
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return backends.Errorf(backends.InUse, "the endpoint %q may be in use: %w", socket, err)
	}
	return os.Remove(socket)
}
