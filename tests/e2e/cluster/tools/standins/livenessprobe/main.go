package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
)

func main() {
	klog.InitFlags(nil)
	address := flag.String("csi-address", "/run/csi/socket", "socket of the driver")
	timeout := flag.Duration("probe-timeout", time.Second, "of each call to the driver")
	port := flag.String("health-port", "9808", "port of /healthz on all addresses")
	endpoint := flag.String("http-endpoint", "", "address of /healthz, in place of --health-port")
	flag.Parse()
	if *endpoint == "" {
		*endpoint = ":" + *port
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, *address, *endpoint, *timeout)
	stop()
	if err != nil {
		klog.ErrorS(err, "the probe ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, address, endpoint string, timeout time.Duration) error {
	conn, err := connection.Connect(ctx, address, metrics.NewCSIMetricsManagerForSidecar(""))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) { answer(w, r, conn, timeout) })
	server := &http.Server{Addr: endpoint, Handler: mux, ReadHeaderTimeout: timeout}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// answer calls the driver, and reports its answer.
func answer(w http.ResponseWriter, r *http.Request, conn *grpc.ClientConn, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	ready, err := rpc.Probe(ctx, conn)
	switch {
	case err != nil:
		klog.ErrorS(err, "the driver does not answer")
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case !ready:
		http.Error(w, "the driver is not ready", http.StatusInternalServerError)
	default:
		fmt.Fprintln(w, "ok")
	}
}
