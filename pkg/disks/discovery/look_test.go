package discovery

import (
	"context"
	"testing"

	"github.com/stowage-csi/stowage/pkg/node/holders"
)

// TestIsBlind checks which searches for users prove nothing.
func TestIsBlind(t *testing.T) {
	going := t.Context()
	over, cancel := context.WithCancel(going)
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		partial bool
		pid     int
		want    bool
	}{
		"all was seen":                        {going, false, 7, false},
		"all was seen, in time":               {over, false, 7, false},
		"it was cut short":                    {over, true, 7, true},
		"of a container's own processes":      {going, true, 1, true},
		"of a node that is a container":       {going, true, 7, false},
		"by the machine's first, of them all": {going, false, 1, false},
	} {
		if got := isBlind(c.ctx, holders.Found{Partial: c.partial}, c.pid); got != c.want {
			t.Errorf("%s: it is blind: %t, want %t", name, got, c.want)
		}
	}
}
