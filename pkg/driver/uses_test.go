package driver

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/uses"
)

// noting is a node backend that notes the use of the volume "used".
type noting struct{ backends.NodeBackend }

func (noting) Used(_ context.Context, handle string) bool { return handle == "used" }

func (noting) Release(context.Context, string) error { return nil }

// TestUses checks that a driver says whether its node uses a volume, if its backend notes the use.
func TestUses(t *testing.T) {
	for name, c := range map[string]struct {
		backend backends.NodeBackend
		volume  string
		inUse   bool
		want    codes.Code
	}{
		"in use":                       {noting{}, "used", true, codes.OK},
		"not in use":                   {noting{}, "other", false, codes.OK},
		"no volume":                    {noting{}, "", false, codes.InvalidArgument},
		"a backend that notes nothing": {folders{}, "used", false, codes.Unimplemented},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveConfig(t, Config{Instance: &backends.Instance{Node: c.backend}, NodeID: "node-1",
				StateDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, time.Second)
			answer := &structpb.Struct{}
			err := s.connection.Invoke(t.Context(), "/"+uses.Service+"/"+uses.Method,
				uses.Query{Volume: c.volume}.Encode(), answer)
			if status.Code(err) != c.want {
				t.Fatalf("the answer is %v, want %s", err, c.want)
			}
			if c.want != codes.OK {
				return
			}
			use, err := uses.DecodeUse(answer)
			if err != nil || use.InUse != c.inUse || (use.Says != "") != c.inUse {
				t.Errorf("%q is in use: %+v, %v", c.volume, use, err)
			}
		})
	}
}
