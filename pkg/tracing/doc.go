// Package tracing marks the steps of a request, so that a trace shows where its time went.
//
// The gRPC edge begins a trace if the process has a destination for traces (--otlp-endpoint). All other packages only
// call Step: the tracer is in the context, so no package needs to be given one. Without a trace, a step costs nothing.
package tracing
