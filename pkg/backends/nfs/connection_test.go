package nfs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
)

// observed notes the connections with which shares are mounted.
type observed struct {
	export.Mounter
	mu          sync.Mutex
	connections []string
}

func (o *observed) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	o.mu.Lock()
	o.connections = append(o.connections, address.Connection)
	o.mu.Unlock()
	return o.Mounter.Open(ctx, address)
}

func (o *observed) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.connections)
}

// The driver's own mounts request the connections of the volume's class, and otherwise those of the configuration: the
// first mount on a machine decides for the pods there.
func TestOwnMountsAskForConnections(t *testing.T) {
	for name, row := range map[string]struct {
		nconnect int
		options  []string
		want     []string
	}{
		"none":          {0, nil, []string{""}},
		"configuration": {4, nil, []string{"nconnect=4"}},
		"class":         {0, []string{"hard", "nconnect=3", "noresvport"}, []string{"", "nconnect=3,noresvport"}},
		"both":          {4, []string{"nconnect=3"}, []string{"nconnect=4", "nconnect=3"}},
		"the same":      {4, []string{"nconnect=4"}, []string{"nconnect=4"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			seen := &observed{Mounter: w.mount}
			w.mount = seen
			w.configured("one")
			w.config.Shares[0].Nconnect = row.nconnect
			w.quiet(onShare("one", "one")) // so that nothing else mounts meanwhile
			v := w.make(onShare("one", "one"))
			// A mount in use is not replaced.
			w.eventually(fmt.Sprintf("mounts with %q", row.want), func() bool {
				_, err := w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle, MountOptions: row.options})
				w.must(err)
				return slices.Equal(seen.all(), row.want)
			})
		})
	}
	config := &Config{Shares: []ShareConfig{{Name: "one", Server: "a", Share: "/x", Nconnect: 17}}}
	if _, err := config.resolve(); !backends.Is(err, backends.Invalid) {
		t.Errorf("17 connections: %v, want Invalid", err)
	}
}
