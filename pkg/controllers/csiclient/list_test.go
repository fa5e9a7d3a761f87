package csiclient

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// pages is a driver's list of volumes: next maps a page's token to the next page's.
type pages struct {
	csi.ControllerClient
	next  map[string]string
	asked int
}

func (p *pages) ListVolumes(_ context.Context, request *csi.ListVolumesRequest,
	_ ...grpc.CallOption) (*csi.ListVolumesResponse, error) {
	if p.asked++; p.asked > 100 {
		return nil, errors.New("the list is asked for without an end")
	}
	return &csi.ListVolumesResponse{NextToken: p.next[request.GetStartingToken()],
		Entries: []*csi.ListVolumesResponse_Entry{{Volume: &csi.Volume{VolumeId: "v" + request.GetStartingToken()}}}}, nil
}

// TestListEnds checks that List fails if a driver's pages lead back to an earlier page.
func TestListEnds(t *testing.T) {
	for name, next := range map[string]map[string]string{
		"to itself": {"": "1", "1": "1"},
		"to two":    {"": "1", "1": "2", "2": "1"},
		"to three":  {"": "1", "1": "2", "2": "3", "3": "1"},
	} {
		p := &pages{next: next}
		if all, err := (&Client{controller: p}).List(t.Context()); !errors.Is(err, errEndlessList) || all != nil {
			t.Errorf("a list that leads %s: %v, %v after %d pages; want %v", name, all, err, p.asked, errEndlessList)
		}
	}
	all, err := (&Client{controller: &pages{next: map[string]string{"": "1", "1": "2"}}}).List(t.Context())
	var handles []string
	for _, v := range all {
		handles = append(handles, v.Handle)
	}
	if err != nil || !slices.Equal(handles, []string{"v", "v1", "v2"}) {
		t.Errorf("a list that ends has %q, %v", handles, err)
	}
}
