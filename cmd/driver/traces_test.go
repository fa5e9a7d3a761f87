package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/stall"
)

func TestMain(m *testing.M) {
	stall.Main()
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(mountns.Isolate(m.Run))
}

// traceCollector keeps the spans that it receives.
type traceCollector struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*tracepb.Span
}

// Export implements collector.TraceServiceServer.
func (c *traceCollector) Export(_ context.Context,
	r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// serve serves the collector until the test ends, and returns its URL.
func (c *traceCollector) serve(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with Stop
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	return "http://" + listener.Addr().String()
}

// path returns the names from a trace's root to the span.
func path(spans []*tracepb.Span, span *tracepb.Span) string {
	name := span.GetName()
	for _, s := range spans {
		if string(s.GetSpanId()) == string(span.GetParentSpanId()) {
			return path(spans, s) + " > " + name
		}
	}
	return name
}

// paths returns the paths of all spans of a trace.
func (c *traceCollector) paths(trace string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, span := range c.spans {
		if string(span.GetTraceId()) == trace {
			all = append(all, path(c.spans, span))
		}
	}
	return all
}

// served runs `stowage standalone` until the returned function is called.
func served(t *testing.T, args ...string) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "traces-") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cmd := command()
	socket := "unix://" + filepath.Join(dir, "csi.sock")
	cmd.SetArgs(append([]string{"standalone", "--backend=local", "--endpoint=" + socket,
		"--data-dir=" + filepath.Join(dir, "data")}, args...))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	conn, err = grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the driver ended with: %v", err)
		}
		_ = conn.Close() // nothing is under way
	})
	t.Cleanup(stop)
	return conn, stop
}

// lifecycle creates and stages a volume of the image pool, and removes it.
func lifecycle(ctx context.Context, t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	capability := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
	controller, node, staging := csi.NewControllerClient(conn), csi.NewNodeClient(conn), t.TempDir()
	made, err := controller.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: "traced", CapacityRange: &csi.CapacityRange{RequiredBytes: 16 << 20},
		VolumeCapabilities: []*csi.VolumeCapability{capability},
	}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetVolume().GetVolumeId()
	_, err = node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: id, VolumeContext: made.GetVolume().GetVolumeContext(), StagingTargetPath: staging,
		VolumeCapability: capability,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.NodeUnstageVolume(ctx,
		&csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging}); err != nil {
		t.Fatal(err)
	}
	if _, err := controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
		t.Fatal(err)
	}
}

// One trace, which the caller began, shows its requests' path through decoding, service, backend and phases.
func TestTraces(t *testing.T) {
	c := &traceCollector{}
	conn, stop := served(t, "--otlp-endpoint="+c.serve(t), "--trace-ratio=0")
	trace := "0123456789abcdef"
	hex := "30313233343536373839616263646566" // trace, as W3C Trace Context writes it
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "traceparent",
		"00-"+hex+"-0102030405060708-01"), 2*time.Minute)
	defer cancel()
	lifecycle(ctx, t, conn)
	stop()
	paths := c.paths(trace)
	const create, stage = "csi.v1.Controller/CreateVolume > ", "csi.v1.Node/NodeStageVolume > "
	for _, want := range []string{
		create + "decode", create + "volume create", create + "volume create > backend create",
		stage + "decode", stage + "node stage", stage + "node stage > find > backend source",
		stage + "node stage > prove", stage + "node stage > probe", stage + "node stage > format",
		stage + "node stage > mount",
		"csi.v1.Node/NodeUnstageVolume > node unstage > clear", "csi.v1.Controller/DeleteVolume > backend delete",
	} {
		if !slices.Contains(paths, want) {
			t.Errorf("no step %q in the trace:\n%s", want, strings.Join(paths, "\n"))
		}
	}
}

// Without a collector nothing is sent, and the caller's trace is ignored.
func TestNoTraces(t *testing.T) {
	c := &traceCollector{}
	c.serve(t)
	conn, stop := served(t)
	lifecycle(t.Context(), t, conn)
	stop()
	if len(c.spans) != 0 {
		t.Errorf("%d spans were sent", len(c.spans))
	}
}

// A missing collector makes neither calls nor the end fail.
func TestCollectorIsGone(t *testing.T) {
	conn, stop := served(t, "--otlp-endpoint=http://127.0.0.1:1")
	lifecycle(t.Context(), t, conn)
	stop()
}

// silent is an exporter whose collector does not answer until the channel is closed.
type silent chan struct{}

func (s silent) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	<-s
	return nil
}

func (silent) Shutdown(context.Context) error { return nil }

// A collector that does not answer delays the end only for a moment.
func TestFlushIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporter := make(silent)
		defer close(exporter)
		sdk := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
		_, span := sdk.Tracer("test").Start(t.Context(), "last")
		span.End()
		begin := time.Now()
		flush(t.Context(), sdk)
		if took := time.Since(begin); took != flushTime {
			t.Errorf("the end took %s, want %s", took, flushTime)
		}
	})
}

func TestBadTraceFlags(t *testing.T) {
	for flag, want := range map[string]string{
		"--otlp-endpoint=collector:4317": "--otlp-endpoint: it is not a URL such as http://collector:4317",
		"--trace-ratio=2":                "--trace-ratio is 2: it must be from 0 to 1",
	} {
		cmd := command()
		cmd.SetArgs([]string{"standalone", "--data-dir=" + t.TempDir(), "--endpoint=" + filepath.Join(t.TempDir(), "s"),
			flag})
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
	}
}
