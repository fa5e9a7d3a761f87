package region

import (
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
)

// Harness returns the conformance suite's harness for the ebs backend, in simulated time. Each check has a new region,
// from begin. Spec describes the volumes.
func Harness(definition backends.Definition, begin func(tb testing.TB) *Region) backendtest.Harness {
	var mu sync.Mutex
	all := map[testing.TB]*Region{}
	of := func(tb testing.TB) *Region {
		mu.Lock()
		defer mu.Unlock()
		return all[tb]
	}
	h := backendtest.Over(definition, func(tb testing.TB, o *backends.Options) {
		w := begin(tb)
		mu.Lock()
		defer mu.Unlock()
		all[tb] = w
		w.Configure(o)
	})
	h.Simulated = true
	h.Nodes = []string{NodeA, NodeB}
	h.Spec = Spec
	h.Secrets = []string{SecretKey}
	h.SnapshotParameters = &ebs.SnapshotParameters{Tags: ebs.Tags{Tag1: "team=storage"}}
	h.Write = func(tb testing.TB, _ *backends.Instance, a backends.Attachment, data []byte) {
		of(tb).Server.Write(a.Handle, string(data))
	}
	h.Read = func(tb testing.TB, _ *backends.Instance, a backends.Attachment) []byte {
		return []byte(of(tb).Server.Read(a.Handle))
	}
	h.Damage = func(tb testing.TB, _ *backends.Instance, handle string) {
		of(tb).Server.Impair(handle, "io-enabled", "failed", "potential-data-inconsistency")
	}
	for _, iops := range []int64{3500, 4000} {
		h.Modifications = append(h.Modifications,
			backendtest.Modification{Value: &ebs.Mutable{Type: aws.String("io2"), IOPS: &iops}})
	}
	return h
}

// Shared returns the specification of a small volume that several nodes can use at a time.
func Shared(name string) backends.Spec {
	s := Spec(name)
	s.Parameters = &ebs.Parameters{Type: "io2", IOPS: 100, Encrypted: aws.Bool(true)}
	s.Access.Types = []backends.AccessType{backends.Block}
	s.Access.Modes = []backends.AccessMode{backends.MultiNodeMultiWriter}
	return s
}
