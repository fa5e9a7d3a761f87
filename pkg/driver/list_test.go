package driver

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// many has a great many volumes and snapshots. Each has as much metadata as CSI allows in a map, and more where CSI
// sets no limit.
type many struct {
	backends.Backend
	backends.Snapshotter
	count int
}

// entries returns a page of the things' numbers.
func (m many) entries(page backends.Page) (numbers []int, next string) {
	from, _ := strconv.Atoi(page.Token) // An empty token is the beginning.
	for i := from; i < m.count; i++ {
		if page.Limit > 0 && len(numbers) == page.Limit {
			return numbers, strconv.Itoa(i)
		}
		numbers = append(numbers, i)
	}
	return numbers, ""
}

func (m many) List(_ context.Context, page backends.Page) (volumes []backends.Volume, next string, err error) {
	numbers, next := m.entries(page)
	for _, i := range numbers {
		volumes = append(volumes, backends.Volume{Handle: fmt.Sprint("vol-", i), CapacityBytes: 1 << 30,
			Attributes:     map[string]string{"a": fmt.Sprintf("%04000d", i)},
			PublishedNodes: slices.Repeat([]string{strings.Repeat("n", 200)}, 50)})
	}
	return volumes, next, nil
}

func (m many) ListSnapshots(_ context.Context, _ string,
	page backends.Page) (snapshots []backends.Snapshot, next string, err error) {
	numbers, next := m.entries(page)
	for _, i := range numbers {
		snapshots = append(snapshots, backends.Snapshot{Handle: fmt.Sprint("snap-", i), Volume: "vol-1",
			Topology: slices.Repeat([]backends.Topology{{"zone": strings.Repeat("z", 4000)}}, 3)})
	}
	return snapshots, next, nil
}

func (m many) Health(context.Context, string) ([]backends.HealthIssue, error) { return nil, nil }

func (m many) ListHealth(_ context.Context, page backends.Page) (unwell []backends.VolumeHealth, next string,
	err error) {
	numbers, next := m.entries(page)
	for _, i := range numbers {
		health := backends.VolumeHealth{Handle: fmt.Sprint("vol-", i)}
		for issue := range 3 {
			health.Issues = append(health.Issues, backends.HealthIssue{Status: backends.Inaccessible,
				Reason: fmt.Sprint("Reason", issue), Message: strings.Repeat("m", mostMessage)})
		}
		unwell = append(unwell, health)
	}
	return unwell, next, nil
}

// TestOneSnapshotHasOnePage requests one snapshot with a token, which no answer has given.
func TestOneSnapshotHasOnePage(t *testing.T) {
	s := serve(t, many{count: 1}, time.Second)
	r, err := s.client.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SnapshotId: "snap-0", StartingToken: "x"})
	if status.Code(err) != codes.Aborted {
		t.Errorf("got %v and %v, want ABORTED", r, err)
	}
}

// TestAListFitsIntoAMessage lists as csi-attacher does: all entries, with gRPC's default message size.
func TestAListFitsIntoAMessage(t *testing.T) {
	const count = 510
	s := serve(t, many{count: count}, time.Second)
	for what, list := range map[string]func(token string) (ids []string, next string, err error){
		"ListVolumes": func(token string) (ids []string, next string, err error) {
			r, err := s.client.ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: token})
			for _, e := range r.GetEntries() {
				ids = append(ids, e.GetVolume().GetVolumeId())
			}
			return ids, r.GetNextToken(), err
		},
		"ListSnapshots": func(token string) (ids []string, next string, err error) {
			r, err := s.client.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{StartingToken: token})
			for _, e := range r.GetEntries() {
				ids = append(ids, e.GetSnapshot().GetSnapshotId())
			}
			return ids, r.GetNextToken(), err
		},
		"ControllerListVolumeHealth": func(token string) (ids []string, next string, err error) {
			r, err := s.client.ControllerListVolumeHealth(t.Context(),
				&csi.ControllerListVolumeHealthRequest{StartingToken: token})
			for _, e := range r.GetEntries() {
				ids = append(ids, e.GetVolumeId())
			}
			return ids, r.GetNextToken(), err
		},
	} {
		seen, calls, token := map[string]bool{}, 0, ""
		for {
			ids, next, err := list(token)
			if err != nil {
				t.Errorf("%s: %v", what, err)
				break
			}
			for _, id := range ids {
				seen[id] = true
			}
			if calls, token = calls+1, next; token == "" || calls > count {
				break
			}
		}
		if len(seen) != count {
			t.Errorf("%s: %d entries are listed, want %d", what, len(seen), count)
		}
		t.Logf("%s: %d calls", what, calls)
	}
}
