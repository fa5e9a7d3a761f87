package nodeview

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/leftovers"
)

// data is the driver's data folder on the node: --data-dir in standalone.yaml.
const data = "/var/lib/stowage"

// View is the state of the volumes on a node.
type View struct {
	Entries []string // paths of volumes, snapshots, and partly created or deleted ones, below the pools
	Staged  []string // paths of the staging records
	Mounts  []Mount  // of the driver's volumes
	Loops   []string // all loop devices of the machine, of any cluster, with the paths of their files
	Own     []string // loop devices whose files are in the driver's data folder
}

// Mount is a mount of a volume.
type Mount struct {
	ID     string // unique while the mount exists: proc_pid_mountinfo(5)
	Target string
}

// Look collects the node's view.
func Look(ctx context.Context, c *access.Cluster, node string) (View, error) {
	entries, err := run(ctx, c, node, "find", data+"/pools", "-mindepth", "3", "-maxdepth", "3")
	if err != nil {
		return View{}, err
	}
	staged, err := run(ctx, c, node, "find", data+"/node", "-name", "*.json")
	if err != nil {
		return View{}, err
	}
	mounts, err := run(ctx, c, node, "cat", "/proc/self/mountinfo")
	if err != nil {
		return View{}, err
	}
	loops, err := run(ctx, c, node, "losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE")
	if err != nil {
		return View{}, err
	}
	own, err := leftovers.Loops(filepath.Join(c.Data(), "nodes", node, data))
	return View{Entries: entries, Staged: staged, Mounts: parse(mounts), Loops: loops, Own: own}, err
}

// ReadFile reads a file on the node.
func ReadFile(ctx context.Context, c *access.Cluster, node, file string) (string, error) {
	lines, err := run(ctx, c, node, "cat", file)
	return strings.Join(lines, "\n"), err
}

// Available returns the free space and the size of the filesystem that holds the driver's data, in bytes.
func Available(ctx context.Context, c *access.Cluster, node string) (free, size int64, err error) {
	lines, err := run(ctx, c, node, "stat", "--file-system", "--format", "%a %b %S", data)
	if err != nil {
		return 0, 0, err
	}
	var block int64
	if _, err := fmt.Sscan(strings.Join(lines, " "), &free, &size, &block); err != nil {
		return 0, 0, err
	}
	return free * block, size * block, nil
}

// parse returns the mounts of the kubelet's CSI volumes.
func parse(lines []string) []Mount {
	var mounts []Mount
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if target := fields[4]; strings.Contains(target, "/kubernetes.io~csi/") ||
			strings.Contains(target, "/kubernetes.io/csi/") {
			mounts = append(mounts, Mount{ID: fields[0], Target: target})
		}
	}
	return mounts
}

// Of lists the view's entries for a volume or snapshot, by its handle or its PersistentVolume's name.
func (v View) Of(names ...string) []string {
	var found []string
	for _, one := range slices.Concat(v.Entries, v.Loops, targets(v.Mounts)) {
		if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(one, name) }) {
			found = append(found, one)
		}
	}
	return found
}

// All lists every entry of this cluster.
func (v View) All() []string { return slices.Concat(v.Entries, v.Staged, targets(v.Mounts), v.Own) }

// Handles returns the handles of the volumes on the disks.
func (v View) Handles() []string {
	var handles []string
	for _, entry := range v.Entries {
		if path.Base(path.Dir(entry)) == "volumes" {
			handles = append(handles, path.Base(entry))
		}
	}
	slices.Sort(handles)
	return handles
}

func targets(mounts []Mount) []string {
	var list []string
	for _, m := range mounts {
		list = append(list, m.Target)
	}
	return list
}

func run(ctx context.Context, c *access.Cluster, node string, argv ...string) ([]string, error) {
	cmd, err := c.NodeCommand(ctx, node, argv...)
	if err != nil {
		return nil, err
	}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("on %s, %s: %w", node, strings.Join(argv, " "), err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}

// ContainerSignal returns the command, for the node, that sends a signal such as SIGKILL to a container's first
// process.
func ContainerSignal(c *access.Cluster, id, signal string) []string {
	return []string{
		filepath.Join(c.Data(), "programs", "ctr"), "--address", "/run/containerd/containerd.sock", "--namespace", "k8s.io",
		"tasks", "kill", "--signal", signal, id,
	}
}
