package ebs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/stowage-csi/stowage/pkg/cloud/metadata"
)

// service is EC2's metadata service, in version 2 only: version 1 answers anyone who can make a process in the instance
// send a request.
type service struct {
	client *imds.Client
	at     string
	off    bool // the SDK's configuration disables it
	limit  time.Duration
}

// newService returns a client of the service at the address in the SDK's configuration. The limit bounds a request.
func newService(config aws.Config, limit time.Duration) service {
	s := service{limit: limit}
	s.client = imds.NewFromConfig(config, func(o *imds.Options) {
		o.EnableFallback = aws.FalseTernary
		// Through a proxy, another machine's service would answer, and this node would take itself for that machine.
		direct, ok := o.HTTPClient.(*awshttp.BuildableClient)
		if o.HTTPClient == nil {
			direct, ok = awshttp.NewBuildableClient(), true
		}
		if ok {
			o.HTTPClient = direct.WithTransportOptions(func(t *http.Transport) { t.Proxy = nil })
		}
		o.APIOptions = append(o.APIOptions, watch)
		s.off = o.ClientEnableState == imds.ClientDisabled
		s.at = "http://169.254.169.254"
		if o.EndpointMode == imds.EndpointModeStateIPv6 {
			s.at = "http://[fd00:ec2::254]"
		}
		s.at = cmp.Or(o.Endpoint, s.at)
	})
	return s
}

// source returns the service as a source of the instance's identity.
func (s service) source() metadata.Source {
	return metadata.Source{
		Name: "the metadata service at " + s.at, Get: s.instance, Timeout: s.limit,
		Silence: "pods on a network of their own reach it only if the instance's HttpPutResponseHopLimit is 2 at least",
	}
}

// instance reads the instance's identity document.
func (s service) instance(ctx context.Context) (metadata.Instance, error) {
	if s.off {
		return metadata.Instance{}, errors.New("was not asked, because AWS_EC2_METADATA_DISABLED is set")
	}
	var last answer
	out, err := s.client.GetInstanceIdentityDocument(context.WithValue(ctx, answerKey{}, &last), nil)
	if err != nil {
		return metadata.Instance{}, last.failure(err)
	}
	if !isID("i", out.InstanceID) {
		return metadata.Instance{}, fmt.Errorf("says that the instance is %q: EC2's are such as i-0123456789abcdef0",
			out.InstanceID)
	}
	return metadata.Instance{ID: out.InstanceID, Type: out.InstanceType, Zone: out.AvailabilityZone, Region: out.Region},
		nil
}

// interfaces counts the instance's current network interfaces.
func (s service) interfaces(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	out, err := s.client.GetMetadata(ctx, &imds.GetMetadataInput{Path: "network/interfaces/macs/"})
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(out.Content)
	return len(strings.Fields(string(text))), errors.Join(err, out.Content.Close())
}

// answer is the outcome of a request's last attempt. The SDK's own error does not always tell: the error for a token
// that was not granted wraps nothing.
type answer struct {
	status int // 0 for none
	err    error
}

// answerKey is the key for the answer in the context of a request.
type answerKey struct{}

// watch records the outcome of each attempt.
func watch(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("Watch",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
			middleware.DeserializeOutput, middleware.Metadata, error) {
			out, data, err := next.HandleDeserialize(ctx, in)
			last, asked := ctx.Value(answerKey{}).(*answer)
			if response, ok := out.RawResponse.(*smithyhttp.Response); ok && asked && err == nil {
				*last = answer{status: response.StatusCode}
			} else if asked && ctx.Err() == nil {
				*last = answer{err: err}
			}
			return out, data, err
		}), middleware.After)
}

// failure returns an error that continues a sentence beginning with the service's name.
func (a answer) failure(err error) error {
	switch {
	case a.status == http.StatusForbidden:
		return errors.New("refuses to answer (403): the instance's HttpEndpoint may be disabled")
	case a.status == http.StatusNotFound:
		return errors.New("knows nothing of it (404): is this EC2?")
	case a.status >= http.StatusMultipleChoices:
		return fmt.Errorf("answers with status %d", a.status)
	case a.status > 0:
		return fmt.Errorf("cannot be understood: %w", err)
	}
	if broken, ok := errors.AsType[*net.OpError](a.err); ok && !broken.Timeout() {
		return fmt.Errorf("cannot be reached: %w", broken)
	}
	return fmt.Errorf("%w: %w", metadata.ErrSilent, err)
}

// isOfService reports whether an error comes from the metadata service, where the SDK looks for credentials last: it
// found none elsewhere.
func isOfService(err error) bool {
	for {
		op, ok := errors.AsType[*smithy.OperationError](err)
		if !ok || op.ServiceID == imds.ServiceID {
			return ok
		}
		err = op.Err
	}
}
