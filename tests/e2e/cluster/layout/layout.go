package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// DefaultData is the default data folder of a cluster. It must be on a filesystem that overlayfs can write to, which
// /tmp often is not.
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
	// Mounts and processes show resolved paths.
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	if path == "/" || filepath.Dir(path) == "/" {
		return Layout{}, fmt.Errorf("%s is no folder for a cluster's data: use one of its own, such as %s", path, DefaultData)
	}
	return Layout{data: path}, nil
}

// Data returns the absolute path of the data folder.
func (l Layout) Data() string { return l.data }

// Path returns the path of a file in the data folder.
func (l Layout) Path(elements ...string) string {
	return filepath.Join(append([]string{l.data}, elements...)...)
}

// Lock returns the path of the file that exists, and is locked, while the cluster is brought up or down. It is beside
// the data folder, because that folder is created and removed.
func (l Layout) Lock() string { return l.data + ".lock" }

// Kubeconfig returns the path of an administrator's kubeconfig, for the host.
func (l Layout) Kubeconfig() string { return l.Path("kubeconfig") }

// Kubectl returns the path of a script that runs kubectl with that kubeconfig.
func (l Layout) Kubectl() string { return l.Path("bin", "kubectl") }

// Self returns the path of the copy of this program that the cluster runs; the original may be removed soon.
func (l Layout) Self() string { return l.Path("bin", "cluster") }

// Program returns the path of a program of the cluster.
func (l Layout) Program(name string) string { return l.Path("programs", name) }

// Log returns the path of a component's log.
func (l Layout) Log(component string) string { return l.Path("logs", component+".log") }

// Certificate returns the path of a file of the cluster's public key infrastructure.
func (l Layout) Certificate(file string) string { return l.Path("pki", file) }

// Config returns the path of a component's configuration file.
func (l Layout) Config(file string) string { return l.Path("config", file) }

// Node returns the path of a node's file, as seen from outside the node.
func (l Layout) Node(name string, elements ...string) string {
	return l.Path(append([]string{"nodes", name}, elements...)...)
}

// Cgroup returns the name, in every hierarchy, of the control group that contains those of the cluster's pods.
func (l Layout) Cgroup() string {
	sum := sha256.Sum256([]byte(l.data))
	return "stowage-cluster-" + hex.EncodeToString(sum[:4])
}

// Exists reports whether the folder holds a cluster's data, whether or not the cluster is running.
func (l Layout) Exists() bool {
	_, err := os.Stat(l.Path(descriptionFile))
	return err == nil
}

// NodeProcess returns the path of the file with the node's process 1, as an ID in the cluster's PID namespace.
func (l Layout) NodeProcess(name string) string { return l.Node(name, "pid") }

// NodeImages returns the path of the file that exists once a node has all images.
func (l Layout) NodeImages(name string) string { return l.Node(name, "images") }

// NodeOff returns the path of the file that keeps a node off while the file exists.
func (l Layout) NodeOff(name string) string { return l.Node(name, "off") }
