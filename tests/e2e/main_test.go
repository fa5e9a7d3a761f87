package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// tree is the root of the source tree, as tests of this package see it.
const tree = "../.."

var (
	data      = flag.String("data", "/var/tmp/stowage-e2e", "the folder of the cluster's data")
	keep      = flag.Bool("keep", false, "keep the cluster up for the next run")
	timings   = flag.Bool("timings", false, "measure, and print tables; on a machine that does nothing else")
	claims    = flag.Int("claims", 50, "how many claims are timed one by one; six times and twice as many are at once")
	pods      = flag.Int("pods", 20, "how many pods run while the driver and the kubelet are restarted; 100 at most")
	seed      = flag.Uint64("seed", 1, "the seed of what is random where something is killed")
	kills     = flag.Int("kills", 2, "how many times each victim is killed while claims come and go")
	buildTime = flag.Duration("build-time", time.Hour, "how long building and starting everything may take")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "clusters are brought up by root")
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), *buildTime)
	defer cancel()
	options := deployed.Options{Tree: tree, Data: *data, Out: os.Stderr, Directories: true}
	if !*keep {
		// After the verdict, any output would look like another failure beside those of the tests.
		quiet := options
		quiet.Out = io.Discard
		defer func() {
			if err := deployed.Down(context.WithoutCancel(ctx), quiet); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
	if err := prepare(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, "cannot prepare the cluster:", err)
		return 1
	}
	if !*timings {
		// They are reports, and assert nothing.
		if err := flag.Set("test.skip", "Timings$"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	code := m.Run()
	if err := nothingLeft(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: after all tests:", err)
		return 1
	}
	return code
}

// prepare brings the cluster up, and removes what an interrupted earlier run left in it.
func prepare(ctx context.Context, options deployed.Options) error {
	if _, err := deployed.Up(ctx, options); err != nil {
		return err
	}
	c, err := open()
	if err != nil {
		return err
	}
	return c.Sweep(ctx)
}

func open() (*workload.Cluster, error) {
	c, err := access.Open(*data)
	if err != nil {
		return nil, err
	}
	return workload.Connect(c)
}

// cluster connects to the cluster that TestMain brought up.
func cluster(t *testing.T) *workload.Cluster {
	t.Helper()
	c, err := open()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// nothingLeft checks that the driver has no data at all. There are no VolumeAttachments either: local volumes need
// none.
func nothingLeft(ctx context.Context) error {
	c, err := open()
	if err != nil {
		return err
	}
	attachments, err := c.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(attachments.Items) > 0 {
		return fmt.Errorf("there are %d VolumeAttachments", len(attachments.Items))
	}
	return workload.Eventually(ctx, "the end of everything on the node", func() error {
		view, err := c.Look(ctx)
		if err == nil && len(view.All()) > 0 {
			err = errors.New("the node has:\n" + strings.Join(view.All(), "\n"))
		}
		return err
	})
}
