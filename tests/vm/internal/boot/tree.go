package boot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

// Tree is the root of the source tree.
type Tree string

// Go runs the go command for the guest, which has no shared libraries, so that programs must be static. It returns the
// command's output.
func (t Tree) Go(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = string(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// Build builds a program.
func (t Tree) Build(ctx context.Context, pkg, path string) error {
	_, err := t.Go(ctx, "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", path, pkg)
	return err
}

// CacheDir returns a folder beside the other caches: those of the Makefile's tools and of hack/image.
func CacheDir() string {
	return store.CacheDir("vm")
}
