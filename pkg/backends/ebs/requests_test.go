package ebs_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// counted returns the counters and the numbers of observations that a collector exports, by series.
func counted(t *testing.T, collector any) map[string]uint64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(collector.(prometheus.Collector)); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]uint64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, pair := range m.GetLabel() {
				labels = append(labels, pair.GetName()+"="+pair.GetValue())
			}
			series := fmt.Sprintf("%s{%s}", strings.TrimPrefix(family.GetName(), "aws_ebs_csi_"), strings.Join(labels, ","))
			all[series] = uint64(m.GetCounter().GetValue()) + m.GetHistogram().GetSampleCount()
		}
	}
	return all
}

// TestEachAttemptIsCounted makes EC2 throttle, fail and refuse requests. Each attempt counts once, by its action.
func TestEachAttemptIsCounted(t *testing.T) { synctest.Test(t, eachAttemptIsCounted) }

func eachAttemptIsCounted(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	w.Proxy.Script(faults.Rule{Action: "CreateVolume", Times: 2, Kind: faults.Throttle},
		faults.Rule{Action: "DescribeVolumes", Times: 1, Kind: faults.Fail},
		faults.Rule{Action: "DescribeVolumes", Times: 1, Kind: faults.LoseRequest})
	volume := d.make("one").Handle
	_, err := d.f.Attach.Attach(t.Context(), region.Request(volume, "i-0dddddddddddddddd"))
	if !backends.Is(err, backends.NotFound) {
		t.Errorf("attaching to no instance: %v", err)
	}
	all := counted(t, d.Backend)
	for series, want := range map[string]uint64{
		"api_request_throttles_total{request=CreateVolume}":                         2,
		"api_request_duration_seconds{request=CreateVolume}":                        1,
		"api_request_errors_total{error=InternalError,request=DescribeVolumes}":     1,
		"api_request_errors_total{error=NoAnswer,request=DescribeVolumes}":          1,
		"api_request_errors_total{error=RequestLimitExceeded,request=CreateVolume}": 0,
		"api_request_throttles_total{request=DescribeVolumes}":                      0,
	} {
		if all[series] != want {
			t.Errorf("%s is %d, want %d", series, all[series], want)
		}
	}
	for _, series := range []string{
		"api_request_duration_seconds{request=DescribeVolumes}",
		"api_request_errors_total{error=InvalidInstanceID.NotFound,request=DescribeInstances}",
	} {
		if all[series] == 0 {
			t.Errorf("%s is not counted", series)
		}
	}
	if t.Failed() {
		t.Log(all)
	}
}

// TestLeavingIsNoFailure makes a caller leave while EC2 does not answer.
func TestLeavingIsNoFailure(t *testing.T) { synctest.Test(t, leavingIsNoFailure) }

func leavingIsNoFailure(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	w.Proxy.Script(faults.Rule{Action: "DescribeVolumes", Kind: faults.Hang})
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := d.f.List.List(ctx, backends.Page{})
		done <- err
	}()
	synctest.Wait()
	leave()
	if err := <-done; err == nil {
		t.Error("a list without an answer")
	}
	for series := range counted(t, d.Backend) {
		if strings.HasPrefix(series, "api_request_errors_total") {
			t.Errorf("%s counts", series)
		}
	}
}

// TestLoneNodesRequestsAreCounted checks that a process without the controller side exports its requests too, and that
// no process exports them twice.
func TestLoneNodesRequestsAreCounted(t *testing.T) { synctest.Test(t, loneNodesRequestsAreCounted) }

func loneNodesRequestsAreCounted(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	for _, nodeOnly := range []bool{true, false} {
		definition := ebs.Definition()
		options := backends.Options{Driver: "ebs.csi.stowage.dev", Config: definition.NewConfig(), NodeOnly: nodeOnly,
			Log: slog.New(slog.DiscardHandler)}
		w.Configure(&options)
		instance, err := definition.Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := instance.Node.(backends.Limiter).Limit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, exports := instance.Node.(prometheus.Collector); exports != nodeOnly {
			t.Errorf("the node exports requests: %t, alone: %t", exports, nodeOnly)
		}
		side := any(instance.Controller)
		if nodeOnly {
			side = instance.Node
		}
		if counted(t, side)["api_request_duration_seconds{request=DescribeInstances}"] == 0 {
			t.Errorf("the node's request is not counted, alone: %t", nodeOnly)
		}
	}
}
