package ebs_test

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestNothingIsSentLate makes the prerequisites of a request arrive after its call has ended.
func TestNothingIsSentLate(t *testing.T) {
	for name, late := range map[string]struct{ credentials, connection bool }{
		"the credentials": {credentials: true},
		"the connection":  {connection: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { nothingIsSentLate(t, late.credentials, late.connection) })
		})
	}
}

func nothingIsSentLate(t *testing.T, credentials, connection bool) {
	const patience, takes = time.Second, 1500 * time.Millisecond // A request has two seconds from its turn.
	w := region.New(t, region.Quick(), 0)
	var slow atomic.Bool
	wait := func(is bool) {
		if is && slow.Load() {
			<-time.After(takes)
		}
	}
	d := open(t, w, func(c *ebs.Config) {
		given := c.AWS.Credentials
		c.AWS.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			wait(credentials)
			return given.Retrieve(ctx)
		})
	})
	v := d.make("one")
	slow.Store(true)
	ctx := httptrace.WithClientTrace(within(t, patience),
		&httptrace.ClientTrace{GetConn: func(string) { wait(connection) }})
	if err := d.Delete(ctx, v.Handle); !backends.Is(err, backends.Busy) {
		t.Errorf("deleted with %v, want Busy", err)
	}
	<-time.After(time.Minute)
	if n := w.Server.Calls()["DeleteVolume"]; n != 0 || len(w.Server.Volumes()) != 1 {
		t.Errorf("%d requests to delete were sent after their call, and there are %+v", n, w.Server.Volumes())
	}
	slow.Store(false)
	if err := d.Delete(t.Context(), v.Handle); err != nil {
		t.Errorf("deleted in time with %v", err)
	}
}
