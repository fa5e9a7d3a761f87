package moto

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/cloud/pace"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestConformance runs the conformance suite of the ebs backend over moto.
func TestConformance(t *testing.T) {
	if *inner != "" {
		conform(t, *inner)
		return
	}
	failed, passed := run(t, t.Name(), server(t).URL)
	judge(t, failed, passed, conformanceFaults())
}

// conform runs the suite. Each check has its own cluster name, and so sees only its own volumes.
func conform(t *testing.T, api string) {
	nodes, err := Instances(t.Context(), api, 2)
	if err != nil {
		t.Fatal(err)
	}
	definition := ebs.Definition()
	open := definition.Open
	definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		instance, err := open(ctx, o)
		if err != nil {
			return nil, err
		}
		f := backends.Resolve(instance.Controller, instance.Node)
		instance.Controller = cloneless{instance.Controller, f.Attach, f.Expand, f.Modify, f.List, f.Snapshot, f.Snapshots,
			f.Topologist}
		return instance, nil
	}
	h := backendtest.Over(definition, func(tb testing.TB, o *backends.Options) { configure(tb, o, api, nodes[0]) })
	h.Nodes = nodes
	h.Spec = spec
	h.Secrets = []string{SecretKey}
	h.SnapshotParameters = &ebs.SnapshotParameters{Tags: ebs.Tags{Tag1: "team=storage"}}
	// Only types: see "more operations a second" in the questions.
	for _, kind := range []string{"gp2", "gp3"} {
		h.Modifications = append(h.Modifications, backendtest.Modification{Value: &ebs.Mutable{Type: &kind}})
	}
	backendtest.Run(t, h)
}

// cloneless is the backend without clones: moto has no CopyVolumes (see "copy a volume" in the questions), and each
// check of clones would wait for it until its patience ends.
type cloneless struct {
	backends.Backend
	backends.Attacher
	backends.Expander
	backends.Modifier
	backends.Lister
	backends.Snapshotter
	backends.SnapshotLister
	backends.Topologist
}

func spec(name string) backends.Spec {
	s := region.Spec(name)
	s.Topology = backends.TopologyRequirement{Preferred: []backends.Topology{{"topology.kubernetes.io/zone": Zone}}}
	return s
}

// configure makes the backend use moto, as its own cluster, with its disks in a directory.
func configure(tb testing.TB, o *backends.Options, api, node string) {
	tb.Helper()
	disks := region.Disks(tb.TempDir())
	front := httptest.NewServer(plugging(tb, api, node, disks))
	tb.Cleanup(front.Close)
	o.NodeID = node
	c, _ := o.Config.(*ebs.Config) // the type that NewConfig returns
	c.AWS, c.SysBlock, c.ClusterID = Config(front.URL), string(disks), fmt.Sprint("cluster-", time.Now().UnixNano())
	c.AWS.HTTPClient = nil // The server in front of moto keeps connections alive.
	c.Timing = ebs.Timing{Call: 30 * time.Second, Read: 30 * time.Second, Settle: 10 * time.Second,
		Gather: time.Millisecond, Tick: time.Second, Least: 5 * time.Millisecond, Most: 500 * time.Millisecond}
	c.Rates = map[string]pace.Limit{}
	for _, action := range region.Changes() {
		c.Rates[action] = pace.Limit{Burst: 10_000, PerSecond: 10_000}
	}
	cluster := c.ClusterID
	tb.Cleanup(func() { sweep(tb, api, cluster) })
}

// plugging forwards requests, and shows this node the disks that moto says it has. It refuses to attach an attached
// volume, as EC2 does and moto does not (see "attach twice to one instance" in the questions): the backend leaves that
// decision to the cloud.
func plugging(tb testing.TB, api, node string, disks region.Disks) http.Handler {
	attached := attachments{nodes: map[string]string{}}
	target, err := url.Parse(api)
	if err != nil {
		tb.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // It reports clients that have left.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // The client has left.
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		form, _ := url.ParseQuery(string(body))
		if attached.refuses(w, form) {
			return
		}
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		attached.note(form, answer.Code)
		if answer.Code == http.StatusOK && form.Get("InstanceId") == node {
			switch form.Get("Action") {
			case "AttachVolume":
				err = disks.Plug(form.Get("VolumeId"))
			case "DetachVolume":
				err = disks.Unplug(form.Get("VolumeId"))
			}
		}
		if err != nil {
			tb.Error(err)
		}
		for key, values := range answer.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // The client may have left.
	})
}

// sweep removes the volumes that a check has left: the next check uses the same instances.
func sweep(tb testing.TB, api, cluster string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 2*time.Minute)
	defer cancel()
	client := ec2.NewFromConfig(Config(api))
	out, err := client.DescribeVolumes(ctx,
		&ec2.DescribeVolumesInput{Filters: []types.Filter{{Name: aws.String("tag-value"), Values: []string{cluster}}}})
	if err != nil {
		tb.Error(err)
		return
	}
	for _, v := range out.Volumes {
		for _, a := range v.Attachments {
			if _, err := client.DetachVolume(ctx,
				&ec2.DetachVolumeInput{VolumeId: v.VolumeId, InstanceId: a.InstanceId}); err != nil {
				tb.Log(err)
			}
		}
		if _, err := client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: v.VolumeId}); err != nil {
			tb.Log(err)
		}
	}
}
