package orchestrator

import (
	"context"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// pageSize makes the tests' lists span several pages.
const pageSize = 5

// VolumeIDs lists the driver's volumes, page by page, sorted.
func (c *Client) VolumeIDs(ctx context.Context) ([]string, error) {
	return pages("ListVolumes", func(token string) (ids []string, next string, err error) {
		response, err := c.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: pageSize, StartingToken: token})
		for _, entry := range response.GetEntries() {
			ids = append(ids, entry.GetVolume().GetVolumeId())
		}
		return ids, response.GetNextToken(), err
	})
}

// SnapshotIDs lists the driver's snapshots, page by page, sorted.
func (c *Client) SnapshotIDs(ctx context.Context) ([]string, error) {
	return pages("ListSnapshots", func(token string) (ids []string, next string, err error) {
		response, err := c.ListSnapshots(ctx, &csi.ListSnapshotsRequest{MaxEntries: pageSize, StartingToken: token})
		for _, entry := range response.GetEntries() {
			ids = append(ids, entry.GetSnapshot().GetSnapshotId())
		}
		return ids, response.GetNextToken(), err
	})
}

func pages(method string, page func(token string) (ids []string, next string, err error)) ([]string, error) {
	var all []string
	for token, first := "", true; first || token != ""; first = false {
		ids, next, err := page(token)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if len(ids) > pageSize {
			return nil, fmt.Errorf("%s: %d entries on a page of at most %d", method, len(ids), pageSize)
		}
		all = append(all, ids...)
		token = next
	}
	slices.Sort(all)
	return all, nil
}
