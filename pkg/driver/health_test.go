package driver

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// unwell is a backend that reports several messages for one reason, as with two missing disks.
type unwell struct {
	backends.Backend
	backends.NodeBackend
}

func (unwell) Health(context.Context, string) ([]backends.HealthIssue, error) {
	return []backends.HealthIssue{
		{Status: backends.Degraded, Reason: "VolumeEvent", Message: "one"},
		{Status: backends.Inaccessible, Reason: "VolumeEvent", Message: "worse"},
		{Status: backends.Degraded, Reason: "VolumeEvent", Message: "two"},
		{Status: backends.Degraded, Reason: "VolumeEvent", Message: "one"},
		{Status: backends.Degraded, Reason: "Full", Message: "other"},
		{Status: backends.Degraded, Reason: "Long", Message: strings.Repeat("x", mostMessage)},
		{Status: backends.Degraded, Reason: "Long", Message: strings.Repeat("y", mostMessage)},
	}, nil
}

func (u unwell) ListHealth(ctx context.Context, _ backends.Page) ([]backends.VolumeHealth, string, error) {
	issues, err := u.Health(ctx, "v")
	return []backends.VolumeHealth{{Handle: "v", Issues: issues}}, "", err
}

func (unwell) Inspect(context.Context) ([]backends.StorageIssue, error) {
	return []backends.StorageIssue{
		{Unreachable: true, Reason: "PoolMissing", Message: "a is gone"},
		{Reason: "PoolMissing", Message: "c is strange"},
		{Unreachable: true, Reason: "PoolMissing", Message: "b is gone"},
	}, nil
}

// TestHealthNamesEachReasonOnce: "The Plugin MUST NOT return multiple VolumeHealthEntry messages for the same volume
// with the same (status, reason) combination", and likewise of StorageBackendHealth.
func TestHealthNamesEachReasonOnce(t *testing.T) {
	s := serveConfig(t, Config{Instance: &backends.Instance{Controller: unwell{}, Node: unwell{}}, NodeID: "node-1",
		StateDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, time.Second)
	one, err := s.client.ControllerGetVolumeHealth(t.Context(), &csi.ControllerGetVolumeHealthRequest{VolumeId: "v"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.client.ControllerListVolumeHealth(t.Context(), &csi.ControllerListVolumeHealthRequest{})
	if err != nil || len(list.GetEntries()) != 1 {
		t.Fatalf("listed are %v, %v; want one volume", list, err)
	}
	long := strings.Repeat("x", mostMessage-mostUnsaid) + "... (4134 bytes more)"
	want := []string{"DEGRADED VolumeEvent one; two", "INACCESSIBLE VolumeEvent worse", "DEGRADED Full other",
		"DEGRADED Long " + long}
	for rpc, health := range map[string]*csi.VolumeHealth{"get": one.GetVolumeHealth(), "list": list.GetEntries()[0]} {
		var got []string
		for _, h := range health.GetHealthStatuses() {
			got = append(got, strings.Join([]string{h.GetStatus().String(), h.GetReason(), h.GetMessage()}, " "))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %.60q, want %.60q", rpc, got, want)
		}
	}
	storage, err := csi.NewNodeClient(s.connection).NodeGetStorageHealth(t.Context(), &csi.NodeGetStorageHealthRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range storage.GetBackendHealth() {
		got = append(got, strings.Join([]string{h.GetStatus().String(), h.GetReason(), h.GetMessage()}, " "))
	}
	want = []string{"STORAGE_UNREACHABLE PoolMissing a is gone; b is gone", "STORAGE_DEGRADED PoolMissing c is strange"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
