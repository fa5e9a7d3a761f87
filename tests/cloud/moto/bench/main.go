package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/moto"
)

// options are the flags.
type options struct {
	binary, endpoint, listen                     string
	delay                                        time.Duration
	alone, volumes, inFlight, instances, warming int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, flags(), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func flags() (o options) {
	flag.StringVar(&o.binary, "binary", "bin/stowage", "the driver")
	flag.StringVar(&o.endpoint, "endpoint", "",
		"a socket, such as unix:///tmp/csi.sock, on which another driver serves CSI, or is about to (default: start the "+
			"driver)")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "the proxy's address")
	flag.DurationVar(&o.delay, "delay", 20*time.Millisecond, "what the proxy adds to each request")
	flag.IntVar(&o.alone, "alone", 20, "how many volumes are used one after the other")
	flag.IntVar(&o.warming, "warming", 12, "how many volumes are used before that, unmeasured")
	flag.IntVar(&o.volumes, "volumes", 240, "how many volumes are used many at a time")
	flag.IntVar(&o.inFlight, "in-flight", 16, "how many at a time")
	flag.IntVar(&o.instances, "instances", 12, "to how many instances they are attached")
	flag.Parse()
	return o
}

// run measures everything and prints the report.
func run(ctx context.Context, o options, out io.Writer) error {
	root, err := moto.Root(ctx, os.Stderr)
	if err != nil {
		return err
	}
	server, err := moto.Start(ctx, root)
	if err != nil {
		return err
	}
	defer server.Close()
	proxy, err := newProxy(ctx, o.listen, server.URL, o.delay)
	if err != nil {
		return err
	}
	defer proxy.close()
	nodes, err := moto.Instances(ctx, server.URL, o.instances)
	if err != nil {
		return err
	}
	driver, err := connect(ctx, o, proxy.url)
	if err != nil {
		return err
	}
	b := bench{options: o, proxy: proxy, driver: driver, nodes: nodes, floor: newFloor(proxy.url, nodes[0])}
	err = b.measure(ctx)
	if stopped := driver.close(); err == nil {
		err = stopped
	}
	if err != nil {
		return err
	}
	b.report(out)
	return nil
}
