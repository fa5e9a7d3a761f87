package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stowage-csi/stowage/tests/cloud/moto"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// driver is the process that serves CSI: this project's, or another one.
type driver struct {
	csi.ControllerClient
	conn  *grpc.ClientConn
	stop  func() error // nil for another driver
	dir   string
	ended chan error
}

// connect starts the driver, unless another is given, and waits until it answers.
func connect(ctx context.Context, o options, url string) (*driver, error) {
	d := &driver{ended: make(chan error, 1)}
	endpoint := o.endpoint
	if endpoint == "" {
		var err error
		if endpoint, err = d.start(ctx, o.binary, url); err != nil {
			return nil, err
		}
	}
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.conn, d.ControllerClient = conn, csi.NewControllerClient(conn)
	ready, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if _, err := csi.NewIdentityClient(conn).Probe(ready, &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		return nil, errors.Join(fmt.Errorf("the driver on %s does not answer: %w", endpoint, err), d.close())
	}
	return d, nil
}

// start starts the driver with a configuration without rate limits in practice.
func (d *driver) start(ctx context.Context, binary, url string) (endpoint string, err error) {
	if d.dir, err = os.MkdirTemp("", "stowage-moto-bench-"); err != nil {
		return "", err
	}
	config := "clusterID: bench\nrates:\n"
	for _, action := range region.Changes() {
		config += fmt.Sprintf("  %s: {burst: 10000, perSecond: 10000}\n", action)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "config.yaml"), []byte(config), 0o600); err != nil {
		return "", errors.Join(err, d.close())
	}
	endpoint = "unix://" + filepath.Join(d.dir, "csi.sock")
	process := exec.CommandContext(context.WithoutCancel(ctx), binary, "controller", "--backend=ebs",
		"--endpoint="+endpoint,
		"--data-dir="+filepath.Join(d.dir, "data"), "--config="+filepath.Join(d.dir, "config.yaml"))
	process.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+url, "AWS_REGION="+moto.Region,
		"AWS_ACCESS_KEY_ID="+moto.AccessKey, "AWS_SECRET_ACCESS_KEY="+moto.SecretKey)
	process.Stderr = os.Stderr
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // For the kernel, the end of this thread is the end of the parent.
		err := process.Start()
		if started <- err; err == nil {
			d.ended <- process.Wait()
		}
	}()
	if err := <-started; err != nil {
		return "", errors.Join(fmt.Errorf("starting the driver (is it built? make build): %w", err), d.close())
	}
	d.stop = func() error {
		_ = process.Process.Signal(syscall.SIGTERM) // It may have ended; the wait below detects that.
		select {
		case err := <-d.ended:
			return err
		case <-time.After(2 * time.Minute):
			return errors.Join(errors.New("the driver does not end"), process.Process.Kill())
		}
	}
	return endpoint, nil
}

// close ends the processes that were started.
func (d *driver) close() (err error) {
	if d.conn != nil {
		_ = d.conn.Close() // Its server ends next.
	}
	if d.stop != nil {
		err = d.stop()
	}
	if strings.Contains(d.dir, "stowage-moto-bench-") {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	return err
}
