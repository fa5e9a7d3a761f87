package ebs

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Health returns the findings of EC2's checks of the volume ("Amazon EBS volume status checks"). Kinds: NotFound.
func (b *backend) Health(ctx context.Context, handle string) (_ []backends.HealthIssue, err error) {
	defer annotate(&err, "check volume", handle)
	v, err := b.volume(ctx, handle)
	if err != nil {
		return nil, err
	}
	out, err := b.api.DescribeVolumeStatus(ctx, &ec2.DescribeVolumeStatusInput{VolumeIds: []string{handle}})
	issues := issuesOf(v)
	if err = ofEC2(err); isGone(err) {
		return issues, nil // The volume was just seen: this read is older, and has no check results.
	}
	if err != nil {
		return nil, err
	}
	for _, status := range out.VolumeStatuses {
		issues = append(issues, issuesIn(status)...)
	}
	return issues, nil
}

// ListHealth returns the cluster's unhealthy volumes in the order of their handles. Kinds: Busy for a token that is not
// ListHealth's.
func (b *backend) ListHealth(ctx context.Context,
	page backends.Page) (_ []backends.VolumeHealth, next string, err error) {
	defer annotate(&err, "check volumes", "")
	return b.lists.unwell.page(page, "vol", "", func(v backends.VolumeHealth) string { return v.Handle },
		func() ([]backends.VolumeHealth, error) { return b.unwell(ctx) })
}

// unwell finds the cluster's unhealthy volumes.
func (b *backend) unwell(ctx context.Context) (unwell []backends.VolumeHealth, err error) {
	impaired, err := b.impaired(ctx)
	if err != nil {
		return nil, err
	}
	ours, err := b.query(ctx, filter("tag:"+b.ownerTag(), b.cluster()))
	if err != nil {
		return nil, err
	}
	for _, v := range ours {
		id := aws.ToString(v.VolumeId)
		issues := append(issuesOf(v), impaired[id]...)
		if len(issues) > 0 && v.State != types.VolumeStateDeleting && v.State != types.VolumeStateDeleted {
			unwell = append(unwell, backends.VolumeHealth{Handle: id, Issues: issues})
		}
	}
	return unwell, nil
}

// impaired returns the account's volumes that fail a check. The request cannot filter by tags: it asks for the few
// impaired volumes of all owners.
func (b *backend) impaired(ctx context.Context) (map[string][]backends.HealthIssue, error) {
	found := map[string][]backends.HealthIssue{}
	pages := ec2.NewDescribeVolumeStatusPaginator(b.api, &ec2.DescribeVolumeStatusInput{
		Filters:    []types.Filter{filter("volume-status.status", string(types.VolumeStatusInfoStatusImpaired))},
		MaxResults: aws.Int32(pageSize),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, ofEC2(err)
		}
		for _, status := range page.VolumeStatuses {
			found[aws.ToString(status.VolumeId)] = issuesIn(status)
		}
	}
	return found, nil
}

// issuesOf returns the issues that a volume itself shows.
func issuesOf(v types.Volume) []backends.HealthIssue {
	if v.State != types.VolumeStateError {
		return nil
	}
	return []backends.HealthIssue{{Status: backends.Inaccessible, Reason: "VolumeError",
		Message: "EC2 has given the volume up (state error): restore it from a snapshot"}}
}

// issuesIn returns the issues that the checks of one volume report. A check without a result is no issue.
func issuesIn(status types.VolumeStatusItem) (issues []backends.HealthIssue) {
	if status.VolumeStatus == nil || status.VolumeStatus.Status != types.VolumeStatusInfoStatusImpaired {
		return nil
	}
	for _, detail := range status.VolumeStatus.Details {
		switch value := aws.ToString(detail.Status); {
		case detail.Name == types.VolumeStatusNameIoEnabled && value == "failed":
			issues = append(issues, backends.HealthIssue{Status: backends.Inaccessible, Reason: "IODisabled",
				Message: "EC2 has stopped the volume's I/O because its data may be inconsistent: check the data, and enable I/O " +
					"again (EnableVolumeIO)"})
		case detail.Name == types.VolumeStatusNameIoPerformance && value == "stalled":
			issues = append(issues, backends.HealthIssue{Status: backends.Inaccessible, Reason: "IOStalled",
				Message: "EC2 says that the volume's I/O has stalled"})
		case value == "degraded" || value == "severely-degraded" || value == "failed":
			issues = append(issues, backends.HealthIssue{Status: backends.Degraded, Reason: "VolumeImpaired",
				Message: fmt.Sprintf("EC2's check %s of the volume says %s", detail.Name, value)})
		}
	}
	for _, event := range status.Events {
		issues = append(issues, backends.HealthIssue{Status: backends.Degraded, Reason: "VolumeEvent",
			Message: fmt.Sprintf("EC2 reports %s: %s", aws.ToString(event.EventType), aws.ToString(event.Description))})
	}
	if len(issues) == 0 {
		issues = append(issues, backends.HealthIssue{Status: backends.Degraded, Reason: "VolumeImpaired",
			Message: "EC2 says that the volume is impaired, and not why"})
	}
	return issues
}
