package ebs_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
)

// Two instances in one zone and one in another.
const (
	nodeA = "i-0aaaaaaaaaaaaaaaa"
	nodeB = "i-0bbbbbbbbbbbbbbbb"
	nodeC = "i-0cccccccccccccccc"

	secretKey = "s3cr3t-access-key"
)

// world is a cloud with its API, a proxy before it, and this node's view of its disks.
type world struct {
	server *fake.Server
	proxy  *faults.Proxy
	sys    string
	url    string
}

// quick is a cloud that does everything in a few milliseconds.
func quick() fake.Config {
	const tick = 5 * time.Millisecond
	return fake.Config{
		Zones:  []string{"region-1a", "region-1b"},
		Create: tick, Delete: tick, Attach: tick, Detach: tick, Modify: tick, Optimize: 0, Snapshot: tick,
		Types: map[string]fake.InstanceType{"m5.tiny": {MaxAttachments: 12, Shared: true}},
	}
}

func newWorld(tb testing.TB, config fake.Config, seed uint64) *world {
	tb.Helper()
	w := &world{sys: tb.TempDir()}
	config.Plugged = func(instance, volume string) { w.plug(tb, instance, volume) }
	config.Unplugged = func(instance, volume string) { w.unplug(tb, instance, volume) }
	w.server = fake.New(config)
	back := httptest.NewServer(w.server)
	tb.Cleanup(back.Close)
	var err error
	if w.proxy, err = faults.New(back.URL, fake.Dialect(), seed); err != nil {
		tb.Fatal(err)
	}
	front := httptest.NewServer(w.proxy)
	tb.Cleanup(front.Close)
	w.url = front.URL
	for node, zone := range map[string]string{nodeA: config.Zones[0], nodeB: config.Zones[0], nodeC: config.Zones[1]} {
		w.server.AddInstance(fake.Instance{ID: node, Type: "m5.tiny", Zone: zone, Interfaces: 2})
	}
	return w
}

// configure makes the backend use the world.
func (w *world) configure(o *backends.Options) {
	o.NodeID = nodeA
	c := o.Config.(*ebs.Config)
	c.AWS = aws.Config{
		Region: "region-1", BaseEndpoint: &w.url, Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", secretKey, ""),
	}
	c.ClusterID, c.SysBlock = "cluster *1", w.sys
	c.Timing = ebs.Timing{Call: 2 * time.Second, Read: time.Second, Settle: 400 * time.Millisecond, Gather: time.Millisecond, Least: 2 * time.Millisecond, Most: 50 * time.Millisecond}
}

func serial(volume string) string { return strings.Replace(volume, "-", "", 1) }

// plug makes a disk appear in this node's /sys/block, as the kernel shows it: padded to the 20 characters of an NVMe serial
// number and a newline.
func (w *world) plug(tb testing.TB, instance, volume string) {
	if instance != nodeA {
		return
	}
	for n := 1; ; n++ {
		dir := filepath.Join(w.sys, fmt.Sprintf("nvme%dn1", n))
		if os.Mkdir(dir, 0o700) != nil {
			continue
		}
		if err := os.Mkdir(filepath.Join(dir, "device"), 0o700); err != nil {
			tb.Error(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "device", "serial"), fmt.Appendf(nil, "%-20s\n", serial(volume)), 0o600); err != nil {
			tb.Error(err)
		}
		return
	}
}

func (w *world) unplug(tb testing.TB, instance, volume string) {
	if instance != nodeA {
		return
	}
	found, _ := filepath.Glob(filepath.Join(w.sys, "nvme*n1", "device", "serial"))
	for _, path := range found {
		if text, _ := os.ReadFile(path); strings.TrimSpace(string(text)) == serial(volume) {
			if err := os.RemoveAll(filepath.Dir(filepath.Dir(path))); err != nil {
				tb.Error(err)
			}
		}
	}
}

// path makes another path to a disk appear, which the kernel shows beside it and which cannot be opened.
func (w *world) path(tb testing.TB, volume string) {
	tb.Helper()
	dir := filepath.Join(w.sys, "nvme0c0n1", "device")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "serial"), []byte(serial(volume)), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// worlds are those of running tests.
type worlds struct{ all sync.Map }

func (ws *worlds) of(tb testing.TB) *world {
	tb.Helper()
	w, ok := ws.all.Load(tb)
	if !ok {
		tb.Fatal("this test has no world")
	}
	return w.(*world)
}

func spec(name string) backends.Spec {
	return backends.Spec{
		Name:       name,
		Capacity:   backends.CapacityRange{RequiredBytes: 4 << 30},
		Parameters: &ebs.Parameters{Type: "gp3", Encrypted: aws.Bool(true)},
		Access: backends.Access{
			Types: []backends.AccessType{backends.Mount, backends.Block},
			Modes: []backends.AccessMode{backends.SingleNodeWriter},
		},
		Topology: backends.TopologyRequirement{Preferred: []backends.Topology{{"topology.kubernetes.io/zone": "region-1a"}}},
	}
}
