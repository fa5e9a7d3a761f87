package nfsd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Serve runs tests, for example those of a whole package, while the server exports an empty folder of the guest's disk
// with no_root_squash. use gets its path, and returns the tests' exit code. Serve returns that code if nothing else
// fails.
func Serve(use func(path string) int) int {
	code, err := serve(context.Background(), use)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func serve(ctx context.Context, use func(path string) int) (code int, err error) {
	if err := Clear(ctx); err != nil {
		return 1, err
	}
	path, err := Folder()
	if err != nil {
		return 1, err
	}
	// Clients may hold files of the folder until the server has stopped.
	defer func() { err = errors.Join(err, os.RemoveAll(path)) }()
	server, err := Start(ctx, Config{})
	if err != nil {
		return 1, err
	}
	defer func() {
		awaitUnmounts()
		err = errors.Join(err, server.Stop(ctx))
	}()
	if err := server.Export(ctx, Export{Path: path, Options: []string{"no_root_squash"}}); err != nil {
		return 1, err
	}
	return use(path), nil
}

// awaitUnmounts waits until no NFS 4 client knows the server, for at most half a minute. A lazy unmount ends later than
// its call, and hangs if the server stops before.
func awaitUnmounts() {
	limit := time.After(30 * time.Second)
	for {
		clients, err := filepath.Glob(filepath.Join(control, "clients", "[0-9]*"))
		if err != nil || len(clients) == 0 {
			return
		}
		select {
		case <-limit:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Folder creates a folder on the guest's disk to export.
func Folder() (string, error) {
	if err := os.MkdirAll("/srv", 0o755); err != nil {
		return "", err
	}
	path, err := os.MkdirTemp("/srv", "export-")
	if err != nil {
		return "", err
	}
	return path, os.Chmod(path, 0o755)
}
