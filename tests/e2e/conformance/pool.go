package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
)

// dataFolder is the folder of the driver's pools on a node, as set in deploy/kubernetes/overlays/local-standalone.
const dataFolder = "/var/lib/stowage"

// poolBytes is the size of the filesystem that holds the pools. Its image is sparse.
const poolBytes = 128 << 30

// givePool puts the pools on their own xfs. The suite clones and snapshots raw devices in use, which needs a filesystem
// with shared blocks (docs/design); the cluster's folder may be on any filesystem. The image is below that folder, so
// that taking the cluster down finds the image and its loop device.
func givePool(ctx context.Context, c *access.Cluster) error {
	image := filepath.Join(c.Data(), "pools.xfs")
	file, err := os.Create(image)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(poolBytes), file.Close()); err != nil {
		return err
	}
	if _, err := output(exec.CommandContext(ctx, "mkfs.xfs", "-q", image)); err != nil {
		return err
	}
	device, err := output(exec.CommandContext(ctx, "losetup", "--find", "--show", image))
	if err != nil {
		return err
	}
	// The kernel frees the loop device with the last mount.
	mounted := mountPool(ctx, c, device)
	_, err = output(exec.CommandContext(context.WithoutCancel(ctx), "losetup", "--detach", device))
	return errors.Join(mounted, err)
}

func mountPool(ctx context.Context, c *access.Cluster, device string) error {
	for _, argv := range [][]string{{"mkdir", "-p", dataFolder}, {"mount", "-t", "xfs", device, dataFolder}} {
		cmd, err := c.NodeCommand(ctx, c.Nodes()[0], argv...)
		if err != nil {
			return err
		}
		if _, err := output(cmd); err != nil {
			return err
		}
	}
	return nil
}

func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
