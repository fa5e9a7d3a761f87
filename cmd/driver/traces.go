package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushTime bounds how long the last traces may take on their way at the end.
const flushTime = 1500 * time.Millisecond

// collector is where traces go; nil for nowhere.
func (o *options) collector() (*url.URL, error) {
	if o.otlpEndpoint == "" {
		return nil, nil // No collector is no failure.
	}
	at, err := url.Parse(o.otlpEndpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("it is not a URL such as http://collector:4317 or https://collector:4317")
	}
	return at, nil
}

// traces sends traces to the collector until the function that it returns is called; a nil provider when there is
// no collector. One that does not answer loses traces, and holds nothing up.
func (o *options) traces(ctx context.Context, driver string,
	log *slog.Logger) (provider trace.TracerProvider, stop func(), err error) {
	at, err := o.collector()
	if at == nil || err != nil {
		return nil, func() {}, err
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(at.String()))
	if err != nil {
		return nil, nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("traces are lost", "endpoint", at.Redacted(), "error", err)
	}))
	sdk := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.traceRatio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "stowage"), attribute.String("service.version", version),
			attribute.String("service.instance.id", o.nodeID), attribute.String("csi.driver", driver),
		)),
	)
	return sdk, func() { flush(ctx, sdk) }, nil
}

// flush sends the last traces. A collector that is gone neither holds the end up for long nor makes it a failure.
func flush(ctx context.Context, sdk *sdktrace.TracerProvider) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	_ = sdk.Shutdown(ctx) // The error handler has said what is lost.
}
