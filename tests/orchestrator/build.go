package orchestrator

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// command is the package of the driver's command.
const command = "github.com/stowage-csi/stowage/cmd/driver"

// Build builds the driver into a file. It also reads the command's sources, which no test links: the go command reruns
// a cached test when a file that the test has read changes, but does not see the files that its children read.
func Build(ctx context.Context, path string) error {
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-tags", "grpcnotrace", "-o", path, command)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return readSources(ctx)
}

func readSources(ctx context.Context) error {
	dir, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", command).Output()
	if err != nil {
		return fmt.Errorf("go list %s: %w", command, err)
	}
	sources, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err == nil && len(sources) == 0 {
		err = fmt.Errorf("%s has no sources in %s", command, dir)
	}
	for _, source := range sources {
		if _, err := os.ReadFile(source); err != nil {
			return err
		}
	}
	return err
}
