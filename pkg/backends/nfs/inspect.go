package nfs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// probeTime is the time limit of a server for a question about its health.
const probeTime = 5 * time.Second

// Inspect checks the server of each share that this node has used lately. A dead server does not delay the others.
func (n *nodeSide) Inspect(ctx context.Context) (issues []backends.StorageIssue, err error) {
	defer annotate(&err, "inspect shares", "")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	shares := n.engine.pool.Mounted()
	slices.SortFunc(shares, func(a, b export.Address) int { return strings.Compare(a.String(), b.String()) })
	found := make([]*backends.StorageIssue, len(shares))
	var probes sync.WaitGroup
	for i, address := range shares {
		probes.Go(func() { found[i] = n.engine.probe(ctx, address) })
	}
	probes.Wait()
	for _, issue := range found {
		if issue != nil {
			issues = append(issues, *issue)
		}
	}
	return issues, nil
}

func (e *engine) probe(ctx context.Context, address export.Address) *backends.StorageIssue {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := e.pool.With(ctx, address, "asking for the free space", func(_ context.Context, s *share.Share) error {
		_, _, err := s.Space()
		return err
	})
	if err == nil {
		return nil
	}
	return &backends.StorageIssue{Unreachable: true, Reason: "ShareUnreachable",
		Message: fmt.Sprintf("the share %s does not answer: %v", address, failure.OneLine(err))}
}
