package csiclient

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// Machine asks the driver for the state of a node's machine. An error means that the state is not known.
func (c *Client) Machine(ctx context.Context, query machines.Query) (machines.Machine, error) {
	answer := &structpb.Struct{}
	err := c.connection.Invoke(ctx, "/"+machines.Service+"/"+machines.Method, query.Encode(), answer)
	if status.Code(err) == codes.NotFound {
		return machines.Machine{State: machines.Missing, Says: Message(err)}, nil
	}
	if err != nil {
		return machines.Machine{}, err
	}
	return machines.DecodeMachine(answer)
}

// KnowsMachines fails if the driver cannot report the state of machines.
func (c *Client) KnowsMachines(ctx context.Context) error {
	_, err := c.Machine(ctx, machines.Query{})
	if status.Code(err) == codes.Unimplemented {
		return fmt.Errorf("the driver %s does not tell the state of machines, so that no node can be proven to be off: "+
			"leave out --failover", c.driver)
	}
	return nil // Any other answer to an empty query shows that it implements the call.
}
