package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// DefaultData is where a cluster keeps its data unless it is told otherwise. It must be on a filesystem that
// overlayfs can write to, which /tmp often is not.
const DefaultData = "/var/tmp/stowage-cluster"

// Layout is the data folder of a cluster.
type Layout struct {
	data string
}

// New returns the layout of the data folder, which need not exist.
func New(data string) (Layout, error) {
	path, err := filepath.Abs(data)
	if err != nil {
		return Layout{}, err
	}
	// Mounts and processes show where links lead to.
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	if path == "/" || filepath.Dir(path) == "/" {
		return Layout{}, fmt.Errorf("%s is no folder for a cluster's data: use one of its own, such as %s", path, DefaultData)
	}
	return Layout{data: path}, nil
}

// Data is the data folder itself, an absolute path.
func (l Layout) Data() string { return l.data }

// Path is a file in the data folder.
func (l Layout) Path(elements ...string) string {
	return filepath.Join(append([]string{l.data}, elements...)...)
}

// Lock is the file that is there, and locked, while the cluster is brought up or down. It is beside the data
// folder, which comes and goes.
func (l Layout) Lock() string { return l.data + ".lock" }

// Kubeconfig is that of an administrator, for the host.
func (l Layout) Kubeconfig() string { return l.Path("kubeconfig") }

// Kubectl is a script that runs kubectl with that kubeconfig.
func (l Layout) Kubectl() string { return l.Path("bin", "kubectl") }

// Self is the copy of this program that the cluster runs; the one that was called may be gone soon.
func (l Layout) Self() string { return l.Path("bin", "cluster") }

// Program is a program of the cluster.
func (l Layout) Program(name string) string { return l.Path("programs", name) }

// Log is the file that a component writes to.
func (l Layout) Log(component string) string { return l.Path("logs", component+".log") }

// Certificate is a file of the cluster's public key infrastructure.
func (l Layout) Certificate(file string) string { return l.Path("pki", file) }

// Config is a configuration file of a component.
func (l Layout) Config(file string) string { return l.Path("config", file) }

// Node is a file of a node, as it is seen from outside the node.
func (l Layout) Node(name string, elements ...string) string {
	return l.Path(append([]string{"nodes", name}, elements...)...)
}

// Cgroup is the name, in every hierarchy, of the control group that holds those of the cluster's pods.
func (l Layout) Cgroup() string {
	sum := sha256.Sum256([]byte(l.data))
	return "stowage-cluster-" + hex.EncodeToString(sum[:4])
}

// Exists reports whether the folder holds a cluster's data, also of one that is not running.
func (l Layout) Exists() bool {
	_, err := os.Stat(l.Path(descriptionFile))
	return err == nil
}

// NodeProcess is the file that holds the number of the node's process 1 in the cluster's process namespace.
func (l Layout) NodeProcess(name string) string { return l.Node(name, "pid") }

// NodeImages is the file that is there when a node has all images.
func (l Layout) NodeImages(name string) string { return l.Node(name, "images") }

// NodeOff is the file that keeps a node from being started while it is there.
func (l Layout) NodeOff(name string) string { return l.Node(name, "off") }
