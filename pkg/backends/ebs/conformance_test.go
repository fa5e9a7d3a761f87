package ebs_test

import (
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

func TestConformance(t *testing.T) { conform(t, region.Spec) }

// TestConformanceShared is for volumes that several nodes have at a time.
func TestConformanceShared(t *testing.T) {
	conform(t, func(name string) backends.Spec {
		s := region.Spec(name)
		s.Parameters = &ebs.Parameters{Type: "io2", IOPS: 100, Encrypted: aws.Bool(true)}
		s.Access.Types = []backends.AccessType{backends.Block}
		s.Access.Modes = []backends.AccessMode{backends.SingleNodeWriter, backends.MultiNodeMultiWriter}
		return s
	})
}

func conform(t *testing.T, spec func(name string) backends.Spec) {
	var ws worlds
	h := backendtest.Over(ebs.Definition(), func(tb testing.TB, o *backends.Options) {
		w := region.New(tb, region.Quick(), 0)
		ws.all.Store(tb, w)
		w.Configure(o)
	})
	h.Nodes = []string{region.NodeA, region.NodeB}
	h.Spec = spec
	h.Secrets = []string{region.SecretKey}
	h.SnapshotParameters = &ebs.SnapshotParameters{Tags: ebs.Tags{Tag1: "team=storage"}}
	h.Write = func(tb testing.TB, _ *backends.Instance, a backends.Attachment, data []byte) {
		ws.of(tb).Server.Write(a.Handle, string(data))
	}
	h.Read = func(tb testing.TB, _ *backends.Instance, a backends.Attachment) []byte {
		return []byte(ws.of(tb).Server.Read(a.Handle))
	}
	h.Damage = func(tb testing.TB, _ *backends.Instance, handle string) {
		ws.of(tb).Server.Impair(handle, "io-enabled", "failed", "potential-data-inconsistency")
	}
	for _, iops := range []int64{3500, 4000} {
		kind := "io2"
		h.Modifications = append(h.Modifications, backendtest.Modification{Value: &ebs.Mutable{Type: &kind, IOPS: &iops}})
	}
	backendtest.Run(t, h)
}

// worlds are those of running tests.
type worlds struct{ all sync.Map }

func (ws *worlds) of(tb testing.TB) *region.Region {
	tb.Helper()
	w, ok := ws.all.Load(tb)
	if !ok {
		tb.Fatal("this test has no world")
	}
	return w.(*region.Region)
}
