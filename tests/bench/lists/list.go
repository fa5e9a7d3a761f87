package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// makeVolumes creates volumes with many clients, and returns their handles.
func makeVolumes(ctx context.Context, d *orchestrator.Driver, parameters map[string]string, volumes int) (
	handles []string, took time.Duration, err error,
) {
	client, err := d.Dial(orchestrator.DefaultPolicy(), nil)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = client.Close() }() // Its calls have ended.
	begun := time.Now()
	handles = make([]string, volumes)
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			for n := next.Add(1) - 1; n < int64(volumes); n = next.Add(1) - 1 {
				made, err := client.CreateVolume(ctx, request(n, parameters))
				if err != nil {
					return err
				}
				handles[n] = made.GetVolume().GetVolumeId()
			}
			return nil
		})
	}
	err = group.Wait()
	return handles, time.Since(begun), err
}

func request(n int64, parameters map[string]string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name:          fmt.Sprintf("pvc-00000000-0000-0000-0000-%012d", n), // as long as those of csi-provisioner
		CapacityRange: &csi.CapacityRange{RequiredBytes: 4 << 10},          // so that a common disk has space for all
		Parameters:    parameters,
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
	}
}

// list holds the measurements of one list of all volumes.
type list struct {
	took    time.Duration
	pages   int
	largest int64 // of the pages, in bytes
	memory  int64 // the driver's peak, in bytes
}

// listAll lists volumes as csi-attacher does.
func listAll(ctx context.Context, d *orchestrator.Driver, handles []string) (l list, err error) {
	connection, err := grpc.NewClient(d.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return l, err
	}
	defer func() { _ = connection.Close() }() // Its calls have ended.
	driver := csi.NewControllerClient(connection)
	seen := make(map[string]int, len(handles))
	begun := time.Now()
	for token := ""; l.pages == 0 || token != ""; {
		response, err := driver.ListVolumes(ctx, &csi.ListVolumesRequest{StartingToken: token})
		if err != nil {
			return l, fmt.Errorf("page %d: %w", l.pages+1, err)
		}
		for _, entry := range response.GetEntries() {
			seen[entry.GetVolume().GetVolumeId()]++
		}
		l.pages, l.largest = l.pages+1, max(l.largest, int64(proto.Size(response)))
		token = response.GetNextToken()
	}
	l.took = time.Since(begun)
	if err := compare(seen, handles); err != nil {
		return l, err
	}
	l.memory, err = peak(d.PID())
	return l, err
}

// compare checks that each volume, and no other, was listed once.
func compare(seen map[string]int, handles []string) error {
	for _, handle := range handles {
		if n := seen[handle]; n != 1 {
			return fmt.Errorf("the volume %q is in the list %d times", handle, n)
		}
	}
	if len(seen) != len(handles) {
		return fmt.Errorf("the list has %d volumes of %d", len(seen), len(handles))
	}
	return nil
}

// peak returns a process's peak of resident memory in bytes (VmHWM, proc_pid_status(5)).
func peak(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("the process's status has no VmHWM: it has ended")
}

func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
