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

// registration answers the kubelet's requests about the driver.
type registration struct {
	registerapi.UnsafeRegistrationServer
	driver, endpoint string
	end              func(error)
}

// GetInfo returns the plugin's type, name and endpoint.
func (r *registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: r.driver, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus receives the result of the registration. If it failed, this process ends, and the restart of
// its container is the retry.
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
