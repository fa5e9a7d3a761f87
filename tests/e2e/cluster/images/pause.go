package images

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

// pause compiles the pause program from its source in the Kubernetes module.
func (m *Maker) pause(ctx context.Context) (Image, error) {
	dir, err := m.Builder.ModuleDir(ctx, "k8s.io/kubernetes")
	if err != nil {
		return Image{}, err
	}
	source := filepath.Join(dir, "build", "pause", "linux", "pause.c")
	key, err := store.NewKey().Files(source).String()
	if err != nil {
		return Image{}, err
	}
	binary, err := m.Store.Make(ctx, store.Item{
		Name: "pause", Key: key, Make: func(ctx context.Context, path string, progress *store.Progress) error {
			cmd := exec.CommandContext(ctx, "gcc", "-Os", "-static", "-s", "-DVERSION=v3.10.2", "-o", path, source)
			cmd.Stdout, cmd.Stderr = progress, progress
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("gcc: %w:\n%s", err, progress.Tail())
			}
			return nil
		},
	})
	return Image{Name: Pause, Entrypoint: []string{"/pause"}, Files: []File{{Path: "pause", Mode: 0o755, Source: binary}}},
		err
}
