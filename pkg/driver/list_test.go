package driver

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// many has a great many volumes, with as much to say of each as CSI allows a map.
type many struct {
	backends.Backend
	count int
}

func (m many) List(_ context.Context, page backends.Page) (volumes []backends.Volume, next string, err error) {
	from, _ := strconv.Atoi(page.Token) // An empty token is the beginning.
	for i := from; i < m.count; i++ {
		if page.Limit > 0 && len(volumes) == page.Limit {
			return volumes, strconv.Itoa(i), nil
		}
		volumes = append(volumes, backends.Volume{Handle: fmt.Sprint("vol-", i), CapacityBytes: 1 << 30,
			Attributes: map[string]string{"a": fmt.Sprintf("%04000d", i)}})
	}
	return volumes, "", nil
}

// TestAListFitsIntoAMessage asks as csi-attacher does: for all entries, with gRPC's default size of a message.
func TestAListFitsIntoAMessage(t *testing.T) {
	const count = 2100
	s := serve(t, many{count: count}, time.Second)
	seen := map[string]bool{}
	for token, calls := "", 0; ; calls++ {
		response, err := s.client.ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range response.GetEntries() {
			seen[e.GetVolume().GetVolumeId()] = true
		}
		if token = response.GetNextToken(); token == "" || calls > count {
			break
		}
	}
	if len(seen) != count {
		t.Errorf("%d volumes are listed, want %d", len(seen), count)
	}
}
