package driver

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// A caller that retries without a pause does not fill the disk with the log.
func TestRefusalsAreLoggedWithinBounds(t *testing.T) {
	var text bytes.Buffer
	log, limits := slog.New(slog.NewTextHandler(&text, nil)), newLogLimits()
	for range 200_000 {
		limits.refusal(log, "code", "NotFound", "error", strings.Repeat("x", 200))
	}
	if text.Len() > 1<<20 {
		t.Errorf("200,000 refusals wrote %d bytes", text.Len())
	}
	if got := strings.Count(text.String(), "refused"); got < refusalBurst {
		t.Errorf("%d refusals are logged, want %d at least", got, refusalBurst)
	}
	limits.refusals.allowed.SetBurst(1 << 20)
	limits.refusals.allowed.SetLimit(1 << 30)
	limits.refusal(log)
	limits.refusal(log)
	if !strings.Contains(text.String(), "refusals_not_logged=") {
		t.Error("the log does not say that refusals were left out")
	}
}
