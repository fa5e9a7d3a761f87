package csiclient

import (
	"context"
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Listed is a volume that the driver lists.
type Listed struct {
	Handle string
	Nodes  []string // IDs, in the driver's terms, of the nodes that the volume is attached to
}

// CanList reports whether the driver lists volumes.
func (c *Client) CanList() bool { return c.lists }

// ListsNodes reports whether the driver's list has the nodes that volumes are attached to.
func (c *Client) ListsNodes() bool { return c.listsNodes }

// ListsOwn reports whether the driver declares that it only lists the volumes of its own cluster.
func (c *Client) ListsOwn() bool { return c.listsOwn }

// errEndlessList is the error for a driver that returns the same page token twice.
var errEndlessList = errors.New("the driver's list of volumes does not end: it gave the same token twice")

// List returns all volumes of the driver, page by page. It fails if the list cannot be read to its end.
func (c *Client) List(ctx context.Context) ([]Listed, error) {
	var volumes []Listed
	request, before := &csi.ListVolumesRequest{}, map[string]bool{}
	for {
		page, err := c.controller.ListVolumes(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, entry := range page.GetEntries() {
			volumes = append(volumes, Listed{Handle: entry.GetVolume().GetVolumeId(),
				Nodes: entry.GetStatus().GetPublishedNodeIds()})
		}
		next := page.GetNextToken()
		switch {
		case next == "":
			return volumes, nil
		case before[next]:
			return nil, errEndlessList
		}
		before[next], request.StartingToken = true, next
	}
}
