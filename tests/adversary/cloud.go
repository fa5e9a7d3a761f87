package adversary

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/cloud/pace"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

const (
	// lag is the maximum age of the cloud's answers.
	lag = 60 * time.Millisecond
	// latest is the maximum delay of a request.
	latest = time.Second
)

// cloud is a region of the strict API, which outlives drivers.
type cloud struct {
	*region.Region
	api    *httptest.Server
	before int // the number of requests before the schedule
}

// begin begins a schedule: its faults are those of its seed.
func (c *cloud) begin(seed uint64) {
	c.Proxy.Seed(seed)
	c.before = len(c.Proxy.Log())
}

// newCloud starts a region, whose address drivers read from a file.
func newCloud(tb testing.TB, root string) (*cloud, error) {
	config := region.Quick()
	config.Lag = lag
	c := &cloud{Region: region.New(tb, config, 1)}
	c.api = httptest.NewServer(c.Proxy)
	return c, os.WriteFile(filepath.Join(root, "cloud"), []byte(c.api.URL), 0o600)
}

// overCloud returns the ebs backend with the cloud whose address is in a file.
func overCloud(root string) backends.Definition {
	d := ebs.Definition()
	open := d.Open
	d.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		url, err := os.ReadFile(filepath.Join(root, "cloud"))
		if err != nil {
			return nil, err
		}
		c, _ := o.Config.(*ebs.Config) // what NewConfig returns
		c.AWS = aws.Config{Region: "region-1", BaseEndpoint: aws.String(string(url)),
			Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "")}
		c.ClusterID, c.Rates = "adversary", map[string]pace.Limit{}
		for _, action := range region.Changes() {
			c.Rates[action] = pace.Limit{Burst: 10_000, PerSecond: 10_000}
		}
		c.Timing = ebs.Timing{Call: time.Second, Read: time.Second, Settle: 5 * time.Second, Gather: time.Millisecond,
			Tick: time.Millisecond, Least: 2 * time.Millisecond, Most: 20 * time.Millisecond}
		return open(ctx, o)
	}
	return d
}

// put writes one version to a volume, as a machine does to which it is attached.
func (c *cloud) put(volume, name string, id uint64) error {
	all, err := c.look(volume)
	if err != nil {
		return err
	}
	all[name] = id
	text, err := json.Marshal(all)
	c.Server.Write(volume, string(text))
	return err
}

// look reads the contents of a volume.
func (c *cloud) look(volume string) (vector, error) {
	all := vector{}
	return all, json.Unmarshal([]byte(cmp.Or(c.Server.Read(volume), "{}")), &all)
}

// tree returns the volumes and snapshots in the cloud.
func (c *cloud) tree() (list []string) {
	for _, v := range c.Server.Volumes() {
		list = append(list, v.ID)
	}
	for id := range c.Server.Snapshots() {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// bad makes requests fail, get lost or arrive late until the end.
func (w *world) bad(Fault) (func() error, error) {
	w.cloud.Proxy.Random(map[faults.Kind]int{
		faults.Throttle: 60, faults.Fail: 20, faults.FailAfter: 20, faults.LoseRequest: 20, faults.LoseReply: 30,
		faults.Duplicate: 20, faults.Delay: 40,
		faults.Truncate: 15,
	}, latest)
	return func() error {
		w.cloud.Proxy.Stop()
		<-time.After(2 * latest) // Delayed requests have arrived.
		return nil
	}, nil
}

// unsteady makes reads go back in time until the end: items that were seen become unseen again.
func (w *world) unsteady(Fault) (func() error, error) {
	w.cloud.Server.SetUnsteady(true)
	return func() error {
		w.cloud.Server.SetUnsteady(false)
		<-time.After(lag)
		return nil
	}, nil
}

// overStrictAPI returns a setup whose controller can be killed, and overtaken by another.
func overStrictAPI() Setup {
	return Setup{
		Name: "ebs", Apart: true, Alone: true, Cloud: true, Attach: true, Node: region.NodeA, Zone: "region-1a", Scale: 1024,
		Profiles:   "calls copies cloud",
		Classes:    []Class{{Parameters: map[string]string{"type": "gp3"}, Modified: map[string]string{"throughput": "200"}}},
		Definition: overCloud, Config: plain,
	}
}

// cloudy returns lives during which requests fail.
func (d dice) cloudy() [][]Step {
	tracks := d.calls()
	for _, track := range tracks {
		for i := range track {
			if f := track[i].Fault; f != nil {
				*f = Fault{Kind: pick(d, "cloud", "unsteady", "kill", "stop"), After: d.ms(0, 100), For: d.ms(200, 800)}
			}
		}
	}
	tracks[0][0].Fault = &Fault{Kind: pick(d, "cloud", "cloud", "unsteady"), For: 2 * time.Second}
	return tracks
}

// strayed reports whether only items of a dead process's requests may be left. CreateSnapshot has no client token, so a
// snapshot whose request arrives after its process has died belongs to no caller. There are no more of these than
// requests of this schedule whose snapshots were not acknowledged.
func (w *world) strayed(left []string) bool {
	nobodys := func(id string) bool { return strings.HasPrefix(id, "snap-") }
	return w.setup.Cloud && w.disturbed.Load() && len(left) > 0 &&
		!slices.ContainsFunc(left, func(id string) bool { return !nobodys(id) }) && len(left) <= w.unclaimed()
}

// unclaimed returns how many snapshots the requests of this schedule may have made that nobody was told of.
func (w *world) unclaimed() int {
	made := 0
	for _, e := range w.cloud.Proxy.Log()[w.cloud.before:] {
		switch {
		case e.Action != "CreateSnapshot":
		case slices.Contains([]faults.Kind{faults.Throttle, faults.Fail, faults.LoseRequest, faults.Hang}, e.Kind):
		case e.Kind == faults.Duplicate:
			made += 2
		default:
			made++
		}
	}
	return made - int(w.shots.Load())
}

// tidied deletes strays, as an administrator would who finds them in the list, and returns what is left then.
func (w *world) tidied(strays []string) (more []string) {
	for _, id := range strays {
		r := request{name: "DeleteSnapshot of nobody's " + id, company: true}
		r.send = func(ctx context.Context) (string, error) {
			_, err := w.controls().DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
			return "", err
		}
		_ = w.ask(r) // what is left is blamed
	}
	return w.waitForTree(w.baseline, w.limits.lists)
}

func (c *cloud) String() string { return fmt.Sprint(c.tree()) }
