package deployed

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
)

const (
	// Driver is the name of the driver, and of the provisioner in its classes.
	Driver = "local" + Drivers
	// Drivers is the suffix of every driver's name; the backend's name comes before it.
	Drivers = ".csi.stowage.dev"
	// Namespace is the namespace of the driver's pod.
	Namespace = "stowage-system"
	// StatefulSet is the owner of the driver's pod.
	StatefulSet = "stowage-local-standalone"
	// Pod is the driver's pod.
	Pod = StatefulSet + "-0"
	// Container is the driver's own container in that pod; the others are sidecars.
	Container = "stowage"
	// Manager is the container of the manager of PersistentVolumeSets in that pod.
	Manager = "manager"
)

// The manifests that a user applies, in the tree.
const (
	definitions = "deploy/kubernetes/crds"
	examples    = "deploy/kubernetes/examples/local"
)

// Options say where Stowage is deployed from and to.
type Options struct {
	Tree string    // the root of the source tree
	Data string    // the folder of the cluster's data
	Out  io.Writer // progress
	// Directories adds a pool of directories, which the manifests do not contain, and a class for it.
	Directories bool
}

// manifests returns the kustomizations of the driver and of its classes.
func (o Options) manifests() (driver, classes string) {
	if o.Directories {
		return "tests/e2e/deployed/local", "tests/e2e/deployed/classes"
	}
	return "tests/e2e/deployed/demo", examples
}

// Up brings the cluster up, or uses a running one, and deploys the driver of this tree with its example classes. It
// returns when the driver is ready.
func Up(ctx context.Context, o Options) (*access.Cluster, error) {
	if err := o.run(o.cluster(ctx, "up")); err != nil {
		return nil, err
	}
	c, err := access.Open(o.Data)
	if err != nil {
		return nil, err
	}
	return c, o.deploy(ctx, c)
}

// Down takes the cluster down.
func Down(ctx context.Context, o Options) error { return o.run(o.cluster(ctx, "down")) }

func (o Options) cluster(ctx context.Context, command string) *exec.Cmd {
	args := []string{"run", "./tests/e2e/cluster", command, "-data", o.Data}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = o.Tree
	return cmd
}

func (o Options) deploy(ctx context.Context, c *access.Cluster) error {
	begun := time.Now()
	kubectl := func(args ...string) error { return o.run(c.KubectlCommand(ctx, args...)) }
	// A cluster that was already up may run an earlier build's image of the same name.
	if err := kubectl("delete", "pod", Pod, "--namespace", Namespace, "--ignore-not-found"); err != nil {
		return err
	}
	driver, classes := o.manifests()
	for _, folder := range []string{definitions, driver} {
		if err := kubectl("apply", "--kustomize", filepath.Join(o.Tree, folder)); err != nil {
			return err
		}
	}
	if err := kubectl("rollout", "status", "statefulset", StatefulSet, "--namespace", Namespace, "--timeout",
		"3m"); err != nil {
		return err
	}
	if err := kubectl("apply", "--kustomize", filepath.Join(o.Tree, classes)); err != nil {
		return err
	}
	if err := o.registered(ctx, c); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "deployed: the driver is ready and registered, %v after the first kubectl apply\n",
		time.Since(begun).Round(100*time.Millisecond))
	return nil
}

// registered waits until the kubelet knows the driver. Claims created earlier are provisioned later.
func (o Options) registered(ctx context.Context, c *access.Cluster) error {
	for _, node := range c.Nodes() {
		path := "jsonpath={.spec.drivers[?(@.name=='" + Driver + "')].topologyKeys}"
		if err := o.run(c.KubectlCommand(ctx, "wait", "csinode/"+node, "--for", path, "--timeout", "3m")); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command, with its output as progress.
func (o Options) run(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = o.Out, o.Out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}
