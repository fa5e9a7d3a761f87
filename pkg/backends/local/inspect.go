package local

import (
	"context"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// fullBelow is how few free bytes make a filesystem full: less than the least image.
const fullBelow = leastImage

// Inspect looks at each pool's directory and free space.
func (e *engine) Inspect(ctx context.Context) (issues []backends.StorageIssue, err error) {
	defer annotate(&err, "inspect pools", "")
	for _, p := range e.pools {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if issue := p.inspect(); issue != nil {
			issues = append(issues, *issue)
		}
	}
	return issues, nil
}

func (p *pool) inspect() *backends.StorageIssue {
	if problem := p.problem(); problem != nil {
		return &backends.StorageIssue{Unreachable: !problem.readable, Reason: problem.reason, Message: problem.message}
	}
	free, err := p.ledger.free()
	if err != nil {
		return &backends.StorageIssue{Unreachable: true, Reason: "PoolUnreadable", Message: err.Error()}
	}
	if free < fullBelow {
		message := fmt.Sprintf("the filesystem of pool %q is full: %d bytes are free in %s", p.name, free, p.path)
		return &backends.StorageIssue{Reason: "PoolFull", Message: message}
	}
	return nil
}
