package region

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/cloud/pace"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/wire"
)

// Two instances in one zone and one in another.
const (
	NodeA = "i-0aaaaaaaaaaaaaaaa"
	NodeB = "i-0bbbbbbbbbbbbbbbb"
	NodeC = "i-0cccccccccccccccc"

	SecretKey = "s3cr3t-access-key"

	// address is the API's address, to which every connection of the wire leads.
	address = "http://ec2.test"
)

// Region is a cloud with its API, a proxy in front of it, and this node's view of its disks.
type Region struct {
	Server *fake.Server
	Proxy  *faults.Proxy
	client *http.Client
	sys    string // simulates /sys/block; empty where the kernel's own shows the disks
}

// Quick returns the configuration of a cloud whose transitions take a few milliseconds.
func Quick() fake.Config {
	const tick = 5 * time.Millisecond
	return fake.Config{
		Zones:  []string{"region-1a", "region-1b"},
		Create: tick, Delete: tick, Attach: tick, Detach: tick, Modify: tick, Optimize: 0, Snapshot: tick,
		Types: map[string]fake.InstanceType{"m5.tiny": {MaxAttachments: 12, Shared: true}},
	}
}

// New creates a region until the test ends. The faults use the seed. If Config.Plugged is set, it plugs in the disks of
// NodeA, and the kernel shows them.
func New(tb testing.TB, config fake.Config, seed uint64) *Region {
	tb.Helper()
	w := &Region{}
	if config.Plugged == nil {
		w.sys = tb.TempDir()
		config.Plugged = func(instance, volume string, _ int) { w.plugged(tb, instance, Disks(w.sys).Plug, volume) }
		config.Unplugged = func(instance, volume string) { w.plugged(tb, instance, Disks(w.sys).Unplug, volume) }
	}
	w.Server = fake.New(config)
	var err error
	if w.Proxy, err = faults.New(address, wire.Serve(tb, w.Server), fake.Dialect(), seed); err != nil {
		tb.Fatal(err)
	}
	w.client = &http.Client{Transport: wire.Serve(tb, w.Proxy)}
	// The order is fixed, so that a seed repeats a run: the IDs of the root disks follow from it.
	for _, node := range []struct{ id, zone string }{{NodeA, config.Zones[0]}, {NodeB, config.Zones[0]},
		{NodeC, config.Zones[len(config.Zones)-1]}} {
		w.Server.AddInstance(fake.Instance{ID: node.id, Type: "m5.tiny", Zone: node.zone, Interfaces: 2})
	}
	return w
}

// Configure makes the backend use the region.
func (w *Region) Configure(o *backends.Options) {
	o.NodeID = NodeA
	c, _ := o.Config.(*ebs.Config) // the type that NewConfig returns
	c.AWS = aws.Config{
		Region: "region-1", BaseEndpoint: aws.String(address), HTTPClient: w.client,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", SecretKey, ""),
	}
	c.Rates = map[string]pace.Limit{}
	for _, action := range Changes() {
		c.Rates[action] = pace.Limit{Burst: 10_000, PerSecond: 10_000}
	}
	c.ClusterID = "cluster *1"
	if w.sys != "" {
		c.SysBlock = w.sys
	}
	c.Timing = ebs.Timing{Call: 2 * time.Second, Read: time.Second, Settle: 10 * time.Second, Gather: time.Millisecond,
		Tick: time.Millisecond, Least: 2 * time.Millisecond, Most: 50 * time.Millisecond}
}

// Changes returns the actions that change a resource.
func Changes() []string {
	return []string{
		"CreateVolume", "CopyVolumes", "DeleteVolume", "AttachVolume", "DetachVolume", "ModifyVolume", "CreateSnapshot",
		"DeleteSnapshot", "CreateTags", "DeleteTags",
		"EnableFastSnapshotRestores", "LockSnapshot",
	}
}

// plugged changes this node's disks if the instance is this node.
func (w *Region) plugged(tb testing.TB, instance string, change func(volume string) error, volume string) {
	if instance != NodeA {
		return
	}
	if err := change(volume); err != nil {
		tb.Error(err)
	}
}

// Double adds another disk with a volume's serial number.
func (w *Region) Double(tb testing.TB, volume string) {
	tb.Helper()
	w.plugged(tb, NodeA, Disks(w.sys).Plug, volume)
}

// Path adds another path to a disk, which the kernel shows beside it and which cannot be opened.
func (w *Region) Path(tb testing.TB, volume string) {
	tb.Helper()
	dir := filepath.Join(w.sys, "nvme0c0n1", "device")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "serial"), []byte(Serial(volume)), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Spec returns the specification of a small volume.
func Spec(name string) backends.Spec {
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

// Request returns the request to attach a volume to a node.
func Request(handle, node string) backends.AttachRequest {
	return backends.AttachRequest{Handle: handle, Node: node, Access: backends.Access{
		Types: []backends.AccessType{backends.Mount}, Modes: []backends.AccessMode{backends.SingleNodeWriter},
	}}
}
