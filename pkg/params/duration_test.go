package params_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/params"
)

func TestDuration(t *testing.T) {
	type target struct {
		Every params.Duration `param:"every" min:"1h" max:"2160h" doc:"How often."`
	}
	for text, want := range map[string]time.Duration{
		"24h": 24 * time.Hour, "1h": time.Hour, "2160h": 2160 * time.Hour, "90m": 90 * time.Minute, "1h30m": 90 * time.Minute,
		"7200s": 2 * time.Hour,
	} {
		var got target
		if err := params.Decode(map[string]string{"every": text}, &got); err != nil || got.Every != params.Duration(want) {
			t.Errorf("%q is %v, %v, want %v", text, got.Every, err, want)
		}
		// Encoding and decoding gives the same value.
		var again target
		if err := params.Decode(params.Encode(&got), &again); err != nil || again != got {
			t.Errorf("%q, encoded as %q, is %v, %v", text, params.Encode(&got), again, err)
		}
	}
	for _, text := range []string{"", "24", "1d", "24H", "1.5h", "-24h", "+24h", "024h", "59m", "2161h", "3600000ms",
		"24h ", "0", "0s", "h", "1h-1m", "99999999999h"} {
		var got target
		err := params.Decode(map[string]string{"every": text}, &got)
		if !failure.Is(err, failure.Invalid) || !strings.Contains(err.Error(), "1h to 2160h") || got.Every != 0 {
			t.Errorf("%q is %v, %v, want an error that names the range", text, got.Every, err)
		}
	}
	for d, want := range map[params.Duration]string{
		params.Duration(24 * time.Hour): "24h", params.Duration(90 * time.Minute): "1h30m",
		params.Duration(30 * time.Minute): "30m",
		params.Duration(90 * time.Second): "1m30s", params.Duration(10 * time.Second): "10s",
		params.Duration(time.Hour + time.Second): "1h0m1s", 0: "0s",
	} {
		if got := d.String(); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
	}
}
