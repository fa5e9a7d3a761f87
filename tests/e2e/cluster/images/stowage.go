package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

// local is the tag of the driver's image in buildah's storage, distinct from the tags of images that people build.
const local = "stowage:cluster"

// stowage builds the driver's image from the Dockerfile, as `make image` does.
func (m *Maker) stowage(ctx context.Context) (string, error) {
	key := store.NewKey(Stowage)
	for _, part := range []string{
		"Dockerfile", "LICENSE", "cmd", "pkg", "go.mod", "go.sum", "hack/image", "hack/base-image",
	} {
		key.Sources(filepath.Join(m.Tree, part))
	}
	return m.archive(ctx, Stowage, key, func(ctx context.Context, path string, progress *store.Progress) error {
		if err := m.run(ctx, progress, filepath.Join(m.Tree, "hack", "image"), local, "dev"); err != nil {
			return err
		}
		// hack/image keeps its images here.
		images := filepath.Join(filepath.Dir(m.Store.Dir), "images")
		return m.run(ctx, progress, "buildah", "--storage-driver", "vfs", "--root", filepath.Join(images, "root"),
			"--runroot", filepath.Join(images, "run"), "push", "-q", local, "docker-archive:"+path+":docker.io/library/"+Stowage)
	})
}

func (m *Maker) run(ctx context.Context, progress *store.Progress, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = m.Tree
	cmd.Env = append(os.Environ(), "IMAGE_ARCHIVE=")
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w:\n%s", program, err, progress.Tail())
	}
	return nil
}
