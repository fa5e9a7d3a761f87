package smoke

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
)

// The clusters of these tests are separate from those that people bring up.
const prefix = "/var/tmp/stowage-cluster-test-"

// deadline is the limit for steps that take seconds on an idle machine.
const deadline = 5 * time.Minute

var buildTime = flag.Duration("build-time", time.Hour,
	"how long building everything may take, when it is not in the cache")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run builds the program, and everything that it brings up, before the tests' time limits start.
func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "clusters are brought up by root")
		return 1
	}
	dir, err := os.MkdirTemp("", "cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), *buildTime)
	defer cancel()
	for _, argv := range [][]string{
		{"go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "cluster"),
			"github.com/stowage-csi/stowage/tests/e2e/cluster"},
		{filepath.Join(dir, "cluster"), "build", "-tree", tree},
	} {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", strings.Join(argv, " "), err)
			return 1
		}
	}
	if err := os.Symlink(filepath.Join(dir, "cluster"), program()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.Remove(program()) }()
	return m.Run()
}

// tree is the root of the source tree, as tests of this package see it.
const tree = "../../../.."

// program returns the path of the program under test. It contains this process's ID, because tests may run twice at
// once.
func program() string { return fmt.Sprintf("%sprogram-%d", prefix, os.Getpid()) }

// cluster is a cluster under test.
type cluster struct {
	*access.Cluster
	t    *testing.T
	data string
}

// data returns the folder of a test's cluster. It removes a cluster that an earlier run of the test left, and the
// test's own when it ends.
func data(t *testing.T, name string) string {
	t.Helper()
	data := prefix + name
	run := func() {
		if out, err := command(context.Background(), "down", "-data", data); err != nil {
			t.Errorf("cluster down: %v\n%s", err, out)
		}
	}
	run()
	t.Cleanup(func() {
		if t.Failed() {
			logs(t, data)
		}
		run()
	})
	return data
}

// up brings a cluster up.
func up(t *testing.T, data string, nodes int) *cluster {
	t.Helper()
	out, err := command(t.Context(), "up", "-tree", tree, "-data", data, "-nodes", fmt.Sprint(nodes))
	if err != nil {
		t.Fatalf("cluster up: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	c, err := access.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{Cluster: c, t: t, data: data}
}

func command(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	out, err := exec.CommandContext(ctx, program(), args...).CombinedOutput()
	return string(out), err
}

// kubectl runs kubectl and returns its output.
func (c *cluster) kubectl(input string, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), deadline)
	defer cancel()
	cmd := c.KubectlCommand(ctx, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// logs prints the ends of the components' logs.
func logs(t *testing.T, data string) {
	files, _ := filepath.Glob(filepath.Join(data, "logs", "*.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		t.Logf("%s:\n%s", file, strings.Join(lines[max(0, len(lines)-8):], "\n"))
	}
}
