package up

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/programs"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

const (
	snapshotter = "github.com/kubernetes-csi/external-snapshotter/v8"
	client      = "github.com/kubernetes-csi/external-snapshotter/client/v8"
)

// addons returns a folder of the manifests of a cluster with snapshots: upstream's custom resource definitions and its
// deployment of the snapshot controller, at the version that is built here.
func addons(ctx context.Context, builder *programs.Builder, entries *store.Store) (string, error) {
	var manifests []string
	for _, part := range [][]string{
		{client, "config/crd/*snapshot*.yaml"},
		{snapshotter, "deploy/kubernetes/snapshot-controller/*-snapshot-controller.yaml"},
	} {
		dir, err := builder.ModuleDir(ctx, part[0])
		if err != nil {
			return "", err
		}
		found, err := filepath.Glob(filepath.Join(dir, part[1]))
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "", fmt.Errorf("%s has no %s", part[0], part[1])
		}
		manifests = append(manifests, found...)
	}
	version := builder.Version(snapshotter)
	key, err := store.NewKey(version, groupSnapshots).Files(manifests...).String()
	if err != nil {
		return "", err
	}
	return entries.Make(ctx, store.Item{
		Name: "addons", Key: key,
		Make: func(_ context.Context, path string, _ *store.Progress) error {
			return writeAddons(manifests, version, path)
		},
	})
}

// groupSnapshots enables VolumeGroupSnapshots in the snapshot controller.
const groupSnapshots = `- "--feature-gates=CSIVolumeGroupSnapshot=true"`

// writeAddons copies the manifests. The published ones may name the image of an earlier release. They contain a mark at
// the position of arguments for the snapshot controller.
func writeAddons(manifests []string, version, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	arguments := regexp.MustCompile(`# end snapshot controller args`)
	image := regexp.MustCompile(`(image: *\S+/snapshot-controller:)\S+`)
	for _, manifest := range manifests {
		text, err := os.ReadFile(manifest)
		if err != nil {
			return err
		}
		text = image.ReplaceAll(text, []byte("${1}"+version))
		text = arguments.ReplaceAll(text, []byte(groupSnapshots))
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(manifest)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
