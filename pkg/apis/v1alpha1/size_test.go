package v1alpha1

import (
	"math"
	"regexp"
	"testing"
)

func TestSize(t *testing.T) {
	pattern := regexp.MustCompile(`^[0-9]{1,19}([KMGTPE]i)?$`)
	for _, bytes := range []int64{0, 1, 1023, 1024, 200 << 20, 24731196 << 10, 1<<60 + 1, math.MaxInt64} {
		if s := NewSize(bytes); s.Bytes() != bytes || !pattern.MatchString(string(s)) || len(s) > mostSize {
			t.Errorf("%d bytes are %q, which are %d", bytes, s, s.Bytes())
		}
	}
	if s := NewSize(-1); s != "0" {
		t.Errorf("fewer bytes than none are %q", s)
	}
	for _, text := range []Size{"", "-5", "1e1.5", "1Xi", "12345678901234567890e100000000", "1e99999999999999999999"} {
		if got := text.Bytes(); got != 0 {
			t.Errorf("%q is %d bytes", text, got)
		}
	}
}
