package tracing_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stowage-csi/stowage/pkg/tracing"
)

// TestErrorOfAnyText checks that a step's error is short and printable, whatever a user, a tool or a server says in it.
// With text that is not UTF-8 no span of a batch could be sent.
func TestErrorOfAnyText(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	ctx, request := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test").Start(t.Context(), "r")
	_, end := tracing.Step(ctx, "step")
	end(errors.New("mkfs: \xff\x1b[31m" + strings.Repeat("unknown ", 99999)))
	request.End()
	text := spans.Ended()[0].Status().Description
	if len(text) > 1000 || !utf8.ValidString(text) || strings.ContainsRune(text, '\x1b') ||
		!strings.HasPrefix(text, "mkfs: ") {
		t.Errorf("the span says %.60q in %d bytes, want a short printable text", text, len(text))
	}
}
