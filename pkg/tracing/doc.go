// Package tracing marks the steps of a request, so that a trace shows where its time went.
//
// The edge begins a trace when the process was told where to send traces (--otlp-endpoint). Everything below it only
// calls Step: the tracer comes along in the context, so that no layer needs to be given one, and without a trace a step
// costs nothing.
package tracing
