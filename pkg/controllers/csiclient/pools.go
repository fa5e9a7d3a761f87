package csiclient

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stowage-csi/stowage/pkg/pools"
)

// Pools asks the driver for its pools.
func (c *Client) Pools(ctx context.Context) ([]pools.Pool, error) {
	answer := &structpb.Struct{}
	if err := c.connection.Invoke(ctx, "/"+pools.Service+"/"+pools.Method, &structpb.Struct{}, answer); err != nil {
		return nil, fmt.Errorf("ask the driver %s for its pools: %s", c.driver, Message(err))
	}
	return pools.Decode(answer)
}
