package local

import (
	"context"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// fullBelow is the number of free bytes below which a filesystem is full: the smallest image.
const fullBelow = leastImage

// Inspect checks each pool's directory and free space, and reports pools and items that cannot be used.
func (e *engine) Inspect(ctx context.Context) (issues []backends.StorageIssue, err error) {
	defer annotate(&err, "inspect pools", "")
	for _, p := range e.pools {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if a := p.trouble.Load(); a != nil {
			issues = append(issues, backends.StorageIssue{Unreachable: true, Reason: a.reason,
				Message: failure.OneLine(a.why).Error()})
			continue
		}
		seen, err := look(ctx, e.waiting, p.path, p.inspect)
		if err != nil {
			seen = &backends.StorageIssue{Unreachable: true, Reason: poolSilent, Message: err.Error()}
		}
		for _, issue := range []*backends.StorageIssue{seen, e.inspectEntries(p), p.inspectBounds()} {
			if issue != nil {
				issues = append(issues, *issue)
			}
		}
	}
	for _, k := range e.leftPools() {
		if !k.isEmpty() {
			issues = append(issues, backends.StorageIssue{Unreachable: true, Reason: poolNotConfigured,
				Message: k.why().Error()})
		}
	}
	return issues, nil
}

// inspectEntries reports the unusable items of a pool that is served.
func (e *engine) inspectEntries(p *pool) *backends.StorageIssue {
	count, issue := 0, &backends.StorageIssue{}
	for _, s := range e.stock.shelves() {
		for handle, a := range s.awayFrom(p.name) {
			count++
			issue.Reason = a.reason
			issue.Message = fmt.Sprintf("%d things in pool %q cannot be used now, one of them is %s: %v", count, p.name, handle,
				failure.OneLine(a.why))
		}
	}
	if count == 0 {
		return nil
	}
	return issue
}

// inspectBounds reports volumes whose sizes are no longer enforced.
func (p *pool) inspectBounds() *backends.StorageIssue {
	if message := p.unbounded.Load(); message != nil {
		return &backends.StorageIssue{Reason: "SizesNotEnforced", Message: *message}
	}
	return nil
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
