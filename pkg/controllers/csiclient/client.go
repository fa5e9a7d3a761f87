package csiclient

import (
	"context"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/absence"
	"github.com/stowage-csi/stowage/pkg/manifest"
)

// probeTimeout limits each probe of the driver's readiness.
const probeTimeout = 5 * time.Second

// Client is a connection to a driver.
type Client struct {
	connection *grpc.ClientConn
	controller csi.ControllerClient
	driver     string
	// Capabilities of the driver.
	singleNodeMultiWriter, topology, lists, listsNodes, listsOwn bool
}

// Connect waits until the driver that serves CSI at the address is ready, and reads its capabilities.
func Connect(ctx context.Context, address string) (*Client, error) {
	conn, err := connection.ConnectWithoutMetrics(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("connect to the driver at %s: %w", address, err)
	}
	c := &Client{connection: conn, controller: csi.NewControllerClient(conn)}
	if err := c.learn(ctx); err != nil {
		_ = conn.Close() // The error of learn is reported.
		return nil, fmt.Errorf("ask the driver at %s: %w", address, err)
	}
	return c, nil
}

func (c *Client) learn(ctx context.Context) (err error) {
	if err = rpc.ProbeForever(ctx, c.connection, probeTimeout); err != nil {
		return err
	}
	if c.driver, err = rpc.GetDriverName(ctx, c.connection); err != nil {
		return err
	}
	info, err := csi.NewIdentityClient(c.connection).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	if err != nil {
		return err
	}
	c.listsOwn = manifest.ListsOwn(info.GetManifest())
	plugin, err := rpc.GetPluginCapabilities(ctx, c.connection)
	if err != nil {
		return err
	}
	controller, err := rpc.GetControllerCapabilities(ctx, c.connection)
	if err != nil {
		return err
	}
	if !controller[csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME] {
		return fmt.Errorf("the driver %s cannot create volumes", c.driver)
	}
	c.topology = plugin[csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS]
	c.singleNodeMultiWriter = controller[csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER]
	c.lists = controller[csi.ControllerServiceCapability_RPC_LIST_VOLUMES]
	c.listsNodes = controller[csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES]
	return nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.connection.Close() }

// Driver returns the driver's name, which is the provisioner of its StorageClasses.
func (c *Client) Driver() string { return c.driver }

// HasTopology reports whether the driver's volumes cannot be reached from every node.
func (c *Client) HasTopology() bool { return c.topology }

// IsUnimplemented reports whether an error says that the driver does not implement the call.
func IsUnimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }

// Delete deletes the volume with the handle. It succeeds if the volume does not exist.
func (c *Client) Delete(ctx context.Context, handle string) error {
	_, err := c.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: handle})
	return err
}

// IsFinal reports whether err implies that nothing was created and nothing will be. After any other error the volume
// may exist, and only the same request again can tell. The codes are those that csi-provisioner takes for final, but
// for AlreadyExists: names are random and used once, so that the volume of that name is the caller's own.
// ResourceExhausted is among them as for csi-provisioner when it may choose another place: there was no room, and
// nothing was made.
func IsFinal(err error) bool {
	switch status.Code(err) { //nolint:exhaustive // The codes that leave the outcome open; every other is final.
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted, codes.AlreadyExists:
		return false
	}
	return true
}

// IsAbsent reports whether an error of Create says that there is no volume of the name, and that none comes of an
// earlier request for it. Not every driver says so.
func IsAbsent(err error) bool { return absence.IsSaid(status.Convert(err).Details()) }

// Message is the driver's own sentence about a failure, without the words that gRPC puts around it.
func Message(err error) string { return status.Convert(err).Message() }
