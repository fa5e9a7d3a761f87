package csiclient

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stowage-csi/stowage/pkg/uses"
)

// Use asks the driver whether its node uses a volume. An error means that it is not known.
func (c *Client) Use(ctx context.Context, handle string) (uses.Use, error) {
	answer := &structpb.Struct{}
	query := uses.Query{Volume: handle}
	if err := c.connection.Invoke(ctx, "/"+uses.Service+"/"+uses.Method, query.Encode(), answer); err != nil {
		return uses.Use{}, fmt.Errorf("ask the driver %s whether its node uses %s: %s", c.driver, handle, Message(err))
	}
	return uses.DecodeUse(answer)
}
