package machine

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Until calls ready every 50 ms until it returns nil or ctx is done. The error contains the last result of ready.
func Until(ctx context.Context, what string, ready func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// Answers returns a check that the address accepts connections.
func Answers(network, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		// Stimulus: one attempt of many; the address may not answer yet.
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}
