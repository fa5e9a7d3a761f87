package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"k8s.io/klog/v2"
)

// options are the flags, with the names of the original's.
type options struct {
	csiAddress, registrationPath, registrationDir, httpEndpoint, mode string

	timeout time.Duration
}

func main() {
	var o options
	klog.InitFlags(nil)
	flag.StringVar(&o.csiAddress, "csi-address", "/run/csi/socket", "socket of the driver, as this container sees it")
	flag.StringVar(&o.registrationPath, "kubelet-registration-path", "", "socket of the driver, as the kubelet sees it")
	flag.StringVar(&o.registrationDir, "plugin-registration-path", "/registration", "folder that the kubelet watches")
	flag.StringVar(&o.httpEndpoint, "http-endpoint", "", "address of /healthz; none by default")
	flag.StringVar(&o.mode, "mode", "registration", "kubelet-registration-probe ends at once")
	flag.DurationVar(&o.timeout, "timeout", time.Second, "of each call to the driver")
	port := flag.Int("health-port", 0, "port of /healthz on all addresses; none by default")
	flag.Parse()
	if *port > 0 && o.httpEndpoint == "" {
		o.httpEndpoint = fmt.Sprintf(":%d", *port)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, o)
	stop()
	if err != nil {
		klog.ErrorS(err, "registration ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.mode == "kubelet-registration-probe" {
		return nil
	}
	if o.registrationPath == "" {
		return errors.New("--kubelet-registration-path is missing: it is the driver's socket as the kubelet sees it")
	}
	name, err := driverName(ctx, o)
	if err != nil {
		return err
	}
	klog.InfoS("the driver answers", "driver", name)
	ctx, cancel := context.WithCancelCause(ctx)
	socket := o.registrationDir + "/" + strings.ReplaceAll(name, "/", "_") + "-reg.sock"
	go func() { cancel(health(o.httpEndpoint, socket)) }()
	go func() {
		cancel(serve(ctx, socket, &registration{driver: name, endpoint: o.registrationPath, end: cancel}))
	}()
	<-ctx.Done()
	// The kubelet unregisters a driver whose socket is gone.
	err = os.Remove(socket)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return errors.Join(cause, err)
	}
	return nil
}

// driverName asks the driver for its name until it answers.
func driverName(ctx context.Context, o options) (string, error) {
	conn, err := connection.Connect(ctx, o.csiAddress, metrics.NewCSIMetricsManagerForSidecar(""))
	if err != nil {
		return "", fmt.Errorf("connect to %s: %w", o.csiAddress, err)
	}
	defer func() { _ = conn.Close() }()
	for {
		call, cancel := context.WithTimeout(ctx, o.timeout)
		name, err := rpc.GetDriverName(call, conn)
		cancel()
		if err == nil {
			return name, nil
		}
		klog.ErrorS(err, "the driver does not answer yet", "address", o.csiAddress)
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(o.timeout):
		}
	}
}

// health serves /healthz, which succeeds while the registration socket exists.
func health(address, socket string) error {
	if address == "" {
		select {}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if info, err := os.Stat(socket); err != nil || info.Mode()&os.ModeSocket == 0 {
			http.Error(w, "there is no socket "+socket, http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return http.ListenAndServe(address, mux)
}
