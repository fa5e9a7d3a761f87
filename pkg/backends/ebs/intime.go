package ebs

import (
	"context"
	"fmt"
	"io"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
)

// inTime makes a request check at the last moment whether its caller's time has ended: when its body is written to a
// connection, which may have to be opened first. EC2 ignores a request without its body.
func inTime(ctx context.Context, in middleware.FinalizeInput,
	next middleware.FinalizeHandler) (out middleware.FinalizeOutput, data middleware.Metadata, err error) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return out, data, fmt.Errorf("a request of the SDK is a %T", in.Request)
	}
	if in.Request, err = request.SetStream(&punctual{ctx: ctx, body: request.GetStream()}); err != nil {
		return out, data, err
	}
	return next.HandleFinalize(ctx, in)
}

// punctual is a body that is begun within its caller's time or not at all.
type punctual struct {
	ctx   context.Context //nolint:containedctx // Whether it may be sent depends on it.
	body  io.Reader
	begun bool
}

// Read fails with Busy when it is too late to begin.
func (p *punctual) Read(into []byte) (int, error) {
	if !p.begun {
		if err := flight.InTime(p.ctx); err != nil {
			return 0, err
		}
		p.begun = true
	}
	return p.body.Read(into)
}
