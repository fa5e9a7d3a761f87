package smoke

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/images"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/leftovers"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/machine"
)

// pod returns a pod that serves its own folder over HTTP.
func pod(name, node string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%[1]q,"labels":{"app":%[1]q}},"spec":{
  "nodeName":%[2]q,"terminationGracePeriodSeconds":0,"volumes":[{"name":"data","emptyDir":{}}],
  "containers":[{"name":"main","image":%[3]q,"volumeMounts":[{"name":"data","mountPath":"/data"}],
    "command":["sh","-c","hostname > /data/index.html; echo begun; exec httpd -f -p 80 -h /data"]}]}}`, name, node, images.BusyBox)
}

func service(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%[1]q},"spec":{"selector":{"app":%[1]q},"ports":[{"port":80}]}}`, name)
}

// run runs the pod and waits until it is ready.
func (c *cluster) run(name, node string) {
	c.t.Helper()
	c.kubectl(pod(name, node), "apply", "-f", "-")
	c.kubectl("", "wait", "--for=condition=Ready", "pod/"+name, "--timeout=2m")
}

// TestOneNode runs a pod, inspects it, and takes everything down.
func TestOneNode(t *testing.T) {
	before := lookAtHost(t)
	data := data(t, "one")
	c := up(t, data, 1)
	c.run("web", "node-1")
	if got := c.kubectl("", "logs", "web"); got != "begun\n" {
		t.Errorf("the pod's log is %q", got)
	}
	if got := c.kubectl("", "exec", "web", "--", "cat", "/data/index.html"); got != "web\n" {
		t.Errorf("the volume holds %q", got)
	}
	if got := c.kubectl("input", "exec", "-i", "web", "--", "cat"); got != "input" {
		t.Errorf("cat echoed %q", got)
	}
	c.restart("kubelet")
	c.restart("containerd")
	if got := c.kubectl("", "exec", "web", "--", "cat", "/data/index.html"); got != "web\n" {
		t.Errorf("after the restarts the volume holds %q", got)
	}
	again(t, data)
	c.load()
	takenDown(t, data, before)
}

// restart kills a component of the node, and waits until it runs again and the node is Ready.
func (c *cluster) restart(component string) {
	c.t.Helper()
	first := c.pids(component)
	c.onNode("node-1", "kill", "-9", first)
	c.eventually(component+" runs again", func(context.Context) error {
		if now := c.pids(component); now == "" || now == first {
			return fmt.Errorf("%s runs as %q", component, now)
		}
		return nil
	})
	c.kubectl("", "wait", "--for=condition=Ready", "node/node-1", "--timeout=2m")
	c.eventually("the pod can be entered", func(ctx context.Context) error {
		return c.KubectlCommand(ctx, "exec", "web", "--", "true").Run()
	})
}

// pids returns the IDs of the program's processes on the node.
func (c *cluster) pids(program string) string {
	c.t.Helper()
	link := filepath.Join(c.data, "programs", program)
	return c.onNode("node-1", "sh", "-c",
		"for p in /proc/[0-9]*; do [ \"$(head -z -n1 $p/cmdline 2>/dev/null | tr -d '\\0')\" != "+link+" ] || "+
			"basename $p; done")
}

func (c *cluster) onNode(node string, argv ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), deadline)
	defer cancel()
	cmd, err := c.NodeCommand(ctx, node, argv...)
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%v on %s: %v\n%s", argv, node, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (c *cluster) eventually(what string, check func(context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	if err := machine.Until(ctx, what, check); err != nil {
		c.t.Fatal(err)
	}
}

// load loads an image into the cluster, as a test's developer would.
func (c *cluster) load() {
	c.t.Helper()
	l, err := layout.New(c.data)
	if err != nil {
		c.t.Fatal(err)
	}
	d, err := l.Description()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.LoadImage(c.t.Context(), d.Images[0]); err != nil {
		c.t.Error(err)
	}
	if list := c.onNode("node-1", l.Program("ctr"), "-n", "k8s.io", "images", "list",
		"-q"); !strings.Contains(list, images.Pause) ||
		!strings.Contains(list, "docker.io/library/"+images.Stowage) {
		c.t.Errorf("the node has not the images of pods and of the driver, but\n%s", list)
	}
}

// again brings up a cluster that is already up, and checks that another number of nodes is refused.
func again(t *testing.T, data string) {
	t.Helper()
	begun := time.Now()
	out, err := command(t.Context(), "up", "-tree", tree, "-data", data)
	if err != nil || !strings.Contains(out, "up already") {
		t.Errorf("a second up: %v\n%s", err, out)
	}
	t.Logf("the second up took %v", time.Since(begun))
	if out, err := command(t.Context(), "up", "-tree", tree, "-data", data, "-nodes", "2"); err == nil {
		t.Errorf("up with another number of nodes succeeded:\n%s", out)
	}
}

// takenDown takes the cluster down, twice, and checks that nothing is left.
func takenDown(t *testing.T, data string, before host) {
	t.Helper()
	for range 2 {
		out, err := command(t.Context(), "down", "-data", data)
		if err != nil {
			t.Fatalf("cluster down: %v\n%s", err, out)
		}
		t.Logf("%s", out)
	}
	nothingLeft(t, data, before)
}

// TestTwoNodes moves a pod between nodes. Pods and Services are reachable from both.
func TestTwoNodes(t *testing.T) {
	before := lookAtHost(t)
	data := data(t, "two")
	c := up(t, data, 2)
	c.run("client", "node-1")
	c.kubectl(service("web"), "apply", "-f", "-")
	for _, node := range []string{"node-1", "node-2"} {
		c.run("web", node)
		address := c.kubectl("", "get", "pod", "web", "-o", "jsonpath={.status.podIP}")
		where := c.kubectl("", "get", "pod", "web", "-o", "jsonpath={.spec.nodeName} {.status.hostIP}")
		t.Logf("the pod is at %s on %s", address, where)
		if !strings.HasPrefix(where, node+" ") {
			t.Errorf("the pod is on %s, not on %s", where, node)
		}
		c.reaches(address)
		c.reaches(c.kubectl("", "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"))
		c.kubectl("", "delete", "pod", "web")
	}
	if one, two := c.onNode("node-1", "hostname"), c.onNode("node-2", "hostname"); one != "node-1" || two != "node-2" {
		t.Errorf("the nodes' names are %s and %s", one, two)
	}
	c.onNode("node-1", "touch", "/var/lib/only-here")
	if list := c.onNode("node-2", "ls", "/var/lib"); strings.Contains(list, "only-here") {
		t.Errorf("a file of node-1 is on node-2: %s", list)
	}
	c.powerCycle()
	takenDown(t, data, before)
}

// powerCycle turns a node with a pod off and on again.
func (c *cluster) powerCycle() {
	c.t.Helper()
	c.run("web", "node-2")
	c.onNode("node-2", "touch", "/run/gone", "/var/lib/kept")
	if err := c.StopNode(c.t.Context(), "node-2"); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the end of node-2", func(ctx context.Context) error {
		cmd, err := c.NodeCommand(ctx, "node-2", "true")
		if err == nil && cmd.Run() == nil {
			err = errors.New("a command can still be run on it")
		}
		return err
	})
	if err := c.StartNode("node-2"); err != nil {
		c.t.Fatal(err)
	}
	begun := time.Now()
	c.eventually("the pod's second life", func(context.Context) error {
		status := "{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}"
		if got := c.kubectl("", "get", "pod", "web", "-o", "jsonpath="+status); got != "1 true" {
			return fmt.Errorf("restarts and readiness are %s", got)
		}
		return nil
	})
	c.t.Logf("the pod runs again %v after its node was turned on", time.Since(begun))
	if list := c.onNode("node-2", "sh", "-c", "ls -d /run/gone /var/lib/kept 2>/dev/null; true"); list != "/var/lib/kept" {
		c.t.Errorf("of the files in /run and /var/lib, there are still %q", list)
	}
	c.reaches(c.kubectl("", "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"))
}

// reaches waits until the client gets the web pod's page from the address. A Service follows its pod after a moment.
func (c *cluster) reaches(address string) {
	c.t.Helper()
	c.eventually("http://"+address, func(ctx context.Context) error {
		// Stimulus: one attempt of many; a Service that has no pod yet may not answer.
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		out, err := c.KubectlCommand(ctx, "exec", "client", "--", "wget", "-q", "-O-", "http://"+address+"/").Output()
		if err == nil && string(out) != "web\n" {
			err = fmt.Errorf("it answers %q", out)
		}
		return err
	})
}

// TestKilled kills the cluster's first process while a loop device is attached. A new cluster comes up in its place,
// and nothing is left of either.
func TestKilled(t *testing.T) {
	before := lookAtHost(t)
	data := data(t, "killed")
	c := up(t, data, 1)
	c.run("web", "node-1")
	c.onNode("node-1", "sh", "-c", "truncate -s 16M /var/lib/disk && losetup -f /var/lib/disk")
	if loops, err := leftovers.Loops(data); err != nil || len(loops) != 1 {
		t.Fatalf("the cluster has the loop devices %v (%v), not one", loops, err)
	}
	c.kill()
	if out, err := command(t.Context(), "status", "-data", data); err == nil {
		t.Errorf("status says that the killed cluster is up:\n%s", out)
	}
	up(t, data, 1).run("web", "node-1")
	if loops, err := leftovers.Loops(data); err != nil || len(loops) != 0 {
		t.Errorf("the new cluster has the loop devices %v (%v)", loops, err)
	}
	takenDown(t, data, before)
}

// kill kills the process that holds the cluster, and waits until it has ended.
func (c *cluster) kill() {
	c.t.Helper()
	l, err := layout.New(c.data)
	if err != nil {
		c.t.Fatal(err)
	}
	process, running, err := l.Running()
	if err != nil || !running {
		c.t.Fatalf("the cluster is not running: %v", err)
	}
	found, err := os.FindProcess(process.PID)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := found.Kill(); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the end of the cluster's first process", func(context.Context) error {
		if _, running, err := l.Running(); running || err != nil {
			return fmt.Errorf("running: %v (%w)", running, err)
		}
		return nil
	})
}

// TestInterrupted kills `cluster up` as soon as one file after another exists. `cluster down` leaves nothing behind.
// Once process.json exists, the cluster continues without the process that brought it up.
func TestInterrupted(t *testing.T) {
	before := lookAtHost(t)
	data := data(t, "interrupted")
	for _, file := range []string{
		"", "cluster.json", "programs/kubectl", "bin/kubectl", "pki/ca.crt", "kubeconfig", "logs/cluster.log", "process.json",
		"logs/etcd.log", "nodes/node-1/pid", "nodes/node-1/root", "logs/kube-scheduler.log", "nodes/node-1/images",
	} {
		interrupt(t, data, filepath.Join(data, file))
		takenDown(t, data, before)
	}
}

// interrupt kills `cluster up` once the file exists.
func interrupt(t *testing.T, data, file string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(), "up", "-tree", tree, "-data", data)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			t.Fatalf("up ended before %s was there: %v", file, err)
		case <-tick.C:
		}
		if _, err := os.Lstat(file); err == nil {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Errorf("up came to its end when %s was there", file)
	}
	t.Logf("killed when %s was there", file)
}

// TestForeignFolder checks that a folder that is not a cluster's is neither taken over nor removed.
func TestForeignFolder(t *testing.T) {
	data := t.TempDir()
	file := filepath.Join(data, "thesis.txt")
	if err := os.WriteFile(file, []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"down"}, {"up", "-tree", tree}} {
		out, err := command(t.Context(), append(args, "-data", data)...)
		if err == nil {
			t.Errorf("%s succeeded on a folder with other files:\n%s", args[0], out)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(data); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v), not only the file", entries, err)
	}
}
