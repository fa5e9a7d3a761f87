package nfsdriver

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/vm/internal/stuck"
)

// answered makes a call as the sidecars and the kubelet do: it retries while the driver reports that a retry may
// succeed, for example with NFS 4.0 in the server's grace period. Any other answer is final.
func answered[T any](ctx context.Context, call func(ctx context.Context) (T, error)) (T, error) {
	for begun := time.Now(); ; <-time.After(pause) {
		once, cancel := context.WithTimeout(ctx, long)
		said, err := call(once)
		cancel()
		if later(err) && time.Since(begun) > patience {
			fmt.Fprintf(os.Stderr, "out of patience; what waits:\n%s", stuck.Report())
			return said, err
		}
		if !later(err) || ctx.Err() != nil {
			return said, err
		}
	}
}

// done is answered for a call that returns only an error.
func done(ctx context.Context, call func(ctx context.Context) error) error {
	_, err := answered(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func later(err error) bool {
	return slices.Contains([]codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}, status.Code(err))
}

// patiently repeats each of the calls until it is done.
func (l *life) patiently(ctx context.Context, some ...string) error {
	for _, step := range some {
		if err := done(ctx, func(ctx context.Context) error { return l.do(ctx, step) }); err != nil {
			return err
		}
	}
	return nil
}

// taken takes a snapshot, with retries.
func taken(ctx context.Context, controller csi.ControllerClient,
	request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	return answered(ctx, func(ctx context.Context) (*csi.CreateSnapshotResponse, error) {
		return controller.CreateSnapshot(ctx, request)
	})
}

// dropped deletes a snapshot, with retries.
func dropped(ctx context.Context, controller csi.ControllerClient, id string) error {
	return done(ctx, func(ctx context.Context) error {
		_, err := controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
		return err
	})
}
