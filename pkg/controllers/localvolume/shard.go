package localvolume

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// The cache returns objects in no order. So that a page of an enumeration does not read all of them, an index divides
// the handles into shards, which have an order: a shard has the handles whose hexadecimal digits begin with its name.
// Handles are hashes, so all shards have about the same length.
const (
	shardIndex  = "shard"
	shardDigits = 2
)

// nodeIndex finds the LocalVolumes of a node, so that a decision about one node does not read those of all.
const nodeIndex = "node"

// Index makes a cache find LocalVolumes, LocalSnapshots and LocalSnapshotGroups by shard, and LocalVolumes by node, as
// the cache of New must.
func Index(ctx context.Context, cache client.FieldIndexer) error {
	byName := func(o client.Object) []string { return []string{shardOf(o.GetName())} }
	return errors.Join(cache.IndexField(ctx, &v1alpha1.LocalVolume{}, shardIndex, byName),
		cache.IndexField(ctx, &v1alpha1.LocalVolume{}, nodeIndex, nodesOf),
		cache.IndexField(ctx, &v1alpha1.LocalSnapshot{}, shardIndex, byName),
		cache.IndexField(ctx, &v1alpha1.LocalSnapshotGroup{}, shardIndex, shardsOfMembers))
}

// nodesOf returns the node of a LocalVolume.
func nodesOf(o client.Object) []string {
	if volume, ok := o.(*v1alpha1.LocalVolume); ok {
		return []string{volume.Spec.Node}
	}
	return nil
}

// shardsOfMembers returns the shards of the snapshots in a group.
func shardsOfMembers(o client.Object) (shards []string) {
	if group, ok := o.(*v1alpha1.LocalSnapshotGroup); ok {
		for _, member := range group.Spec.Members {
			shards = append(shards, shardOf(member.Snapshot))
		}
	}
	return shards
}

// shardOf returns the shard of a handle.
func shardOf(handle string) string {
	_, digits, _ := strings.Cut(handle, "-")
	return digits[:min(shardDigits, len(digits))]
}

// shardsFrom returns all shards in order, from that of a handle on, or from the first if it is empty.
func shardsFrom(handle string) iter.Seq[string] {
	first, err := strconv.ParseUint(shardOf(handle), 16, 64)
	if err != nil {
		first = 0
	}
	return func(yield func(string) bool) {
		for n := first; n < 1<<(4*shardDigits) && yield(fmt.Sprintf("%0*x", shardDigits, n)); n++ {
		}
	}
}

// in returns the orders of a shard. They must not be changed.
func (s *orders[O]) in(ctx context.Context, shard string) ([]O, error) {
	return s.all(ctx, client.MatchingFields{shardIndex: shard})
}
