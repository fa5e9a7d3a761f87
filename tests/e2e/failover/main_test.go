package failover

import (
	"context"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/region"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

const (
	tree = "../../.."
	// data and apiPort are in deployed/kustomization.yaml.
	data    = "/var/tmp/stowage-failover"
	apiPort = 8111
	// patience is the limit for steps that take seconds on an idle machine.
	patience = 5 * time.Minute
)

var (
	without = flag.Duration("without", 0,
		"measure without failover: how long to wait for the pod to run elsewhere, ten minutes say")
	partition  = flag.Bool("partition", false, "cut the node's network, not its power, for longer than Kubernetes waits")
	partitions = flag.Int("partitions", 0, "cut the node's network so many times, for up to three quarters of a minute")
	drift      = flag.Bool("drift", false, "cut nothing: kill what attaches in the middle, and take away what it knows")
)

// scene is a cluster of two nodes and its cloud.
type scene struct {
	*testing.T
	*workload.Cluster
	cloud *region.Region
	died  time.Time // when the node was lost
}

func newScene(t *testing.T) *scene {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("clusters are brought up by root")
	}
	s := &scene{T: t}
	d := disks{t: t, folder: filepath.Join(data, "cloud")}
	// The disks are removed first: the folder that lists them is removed with the cluster. The kernel frees a loop device
	// with its last mount.
	s.must(d.removeAll())
	s.clusterIs("down")
	t.Cleanup(func() {
		if err := d.removeAll(); err != nil {
			t.Error(err)
		}
		s.clusterIs("down")
	})
	s.clusterIs("up", "-nodes", "2")
	s.must(d.prepare())
	opened, err := access.Open(data)
	s.must(err)
	s.Cluster, err = workload.Connect(opened)
	s.must(err)
	config := region.Quick()
	config.Plugged, config.Unplugged = d.plugged, d.unplugged
	s.cloud = region.New(t, config, 1)
	s.serve()
	s.deploy()
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) clusterIs(command string, flags ...string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // The first run builds everything.
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./tests/e2e/cluster", command, "-data", data},
		flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = tree, os.Stderr, os.Stderr
	s.must(cmd.Run())
}

// serve gives the cluster access to the cloud's API.
func (s *scene) serve() {
	listener, err := s.Listen(s.Context(), apiPort)
	s.must(err)
	api := &http.Server{Handler: s.cloud.Proxy, ReadHeaderTimeout: time.Minute}
	go func() { _ = api.Serve(listener) }() // It ends when it is closed.
	s.Cleanup(func() { _ = api.Close() })
}

func (s *scene) deploy() {
	for node, instance := range instances() {
		s.kubectl("patch", "node", node, "--patch", `{"spec":{"providerID":"aws:///region-1a/`+instance+`"}}`)
	}
	s.kubectl("apply", "--kustomize", filepath.Join(tree, "deploy/kubernetes/crds"))
	s.kubectl("apply", "--kustomize", "deployed")
	for _, what := range []string{"daemonset/stowage-ebs-node", "deployment/stowage-ebs-controller"} {
		if _, err := s.Kubectl(s.Context(), "rollout", "status", what, "--namespace=stowage-system",
			"--timeout=4m"); err != nil {
			s.explain()
			s.Fatal(err)
		}
	}
	for node, instance := range instances() {
		s.kubectl("wait", "csinode/"+node, "--for", "jsonpath={.spec.drivers[?(@.name=='"+driver+"')].nodeID}="+instance,
			"--timeout=4m")
	}
}

func (s *scene) kubectl(args ...string) string {
	s.Helper()
	out, err := s.Kubectl(s.Context(), args...)
	s.must(err)
	return out
}

// explain logs the information that a person would look at.
func (s *scene) explain() {
	for _, args := range [][]string{
		{"get", "nodes,pods,volumeattachments,csinodes", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"logs", "deployment/stowage-ebs-controller", "-n", "stowage-system", "-c", "manager", "--tail=40"},
		{"logs", "deployment/stowage-ebs-controller", "-n", "stowage-system", "-c", "stowage", "--tail=40"},
		{"logs", "-l", "app.kubernetes.io/component=node", "-n", "stowage-system", "-c", "stowage", "--tail=40", "--prefix"},
	} {
		out, err := s.Kubectl(context.WithoutCancel(s.Context()), args...)
		s.Logf("kubectl %q: %v\n%s", args, err, out)
	}
}
