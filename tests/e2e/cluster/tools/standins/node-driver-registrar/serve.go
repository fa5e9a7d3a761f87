package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registration answers the kubelet's questions about the driver.
type registration struct {
	registerapi.UnsafeRegistrationServer
	driver, endpoint string
	end              func(error)
}

// GetInfo says what plugin this is, and where.
func (r *registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: r.driver, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus is told whether the kubelet took the driver. When it did not, this process ends and
// its container is started again, which is how it is tried again.
func (r *registration) NotifyRegistrationStatus(_ context.Context,
	status *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if status.PluginRegistered {
		klog.InfoS("the kubelet registered the driver", "driver", r.driver)
	} else {
		r.end(fmt.Errorf("the kubelet did not register %s: %s", r.driver, status.Error))
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// serve serves the registration on the socket in the folder that the kubelet watches.
func serve(ctx context.Context, socket string, r *registration) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return err
	}
	server := grpc.NewServer()
	registerapi.RegisterRegistrationServer(server, r)
	return server.Serve(listener)
}
