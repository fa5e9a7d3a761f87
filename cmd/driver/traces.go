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

// flushTime bounds the sending of the last traces at the end.
const flushTime = 1500 * time.Millisecond

// collector returns the destination of traces; nil for none.
func (o *options) collector() (*url.URL, error) {
	if o.otlpEndpoint == "" {
		return nil, nil // No collector is not an error.
	}
	at, err := url.Parse(o.otlpEndpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("it is not a URL such as http://collector:4317 or https://collector:4317")
	}
	return at, nil
}

// traces sends traces to the collector until the returned function is called. The provider is nil if there is no
// collector. A collector that does not answer loses traces, but delays nothing.
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

// flush sends the last traces. A missing collector neither delays the end for long nor makes it fail.
func flush(ctx context.Context, sdk *sdktrace.TracerProvider) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	_ = sdk.Shutdown(ctx) // The error handler has logged what is lost.
}
