package report_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// keeper remembers what is wanted, and answers a request for a change when there is one.
type keeper struct {
	changes chan report.State
	wanted  report.Wanted
	err     error
}

func (k *keeper) State(ctx context.Context, after string) report.State {
	select {
	case state := <-k.changes:
		return state
	case <-ctx.Done():
		return report.State{Revision: after}
	}
}

func (k *keeper) Want(w report.Wanted) error { k.wanted = w; return k.err }

func start(t *testing.T) (*keeper, *report.Client) {
	t.Helper()
	k, socket := &keeper{changes: make(chan report.State, 1)}, filepath.Join(t.TempDir(), "disks.sock")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- report.Serve(ctx, listener, k) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	return k, report.NewClient(socket)
}

func TestStateAndWant(t *testing.T) {
	k, client := start(t)
	k.changes <- report.State{Revision: "2",
		Volumes: []report.Volume{{Name: "a", SizeBytes: 1 << 40, State: report.Available}}}
	state, err := client.State(t.Context(), "1")
	if err != nil || state.Revision != "2" || len(state.Volumes) != 1 || state.Volumes[0].SizeBytes != 1<<40 {
		t.Errorf("%+v, %v", state, err)
	}
	want := report.Wanted{
		Offers:    []report.Offer{{ID: "local-a-1", Volume: "a"}},
		Deletions: []report.Deletable{{ID: "x", Volume: "b", Method: "zero"}},
	}
	if err := client.Want(t.Context(), want); err != nil || len(k.wanted.Offers) != 1 ||
		k.wanted.Deletions[0].Method != "zero" {
		t.Errorf("%+v, %v", k.wanted, err)
	}
	k.err = errors.New("the disk is full")
	if err := client.Want(t.Context(), want); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("a failure arrives as %v", err)
	}
}

// TestSource checks that the state in which an agent has read its wishes arrives, and so does its refusal as older. An
// earlier server, which refuses unknown fields of the body, finds none there.
func TestSource(t *testing.T) {
	k, client := start(t)
	for _, want := range []report.Source{{}, {Object: "0a1b", Generation: 7},
		{Object: "0a1b", Generation: 8, IsNewest: true}} {
		if err := client.Want(t.Context(), report.Wanted{Source: want}); err != nil || k.wanted.Source != want {
			t.Errorf("%+v arrives as %+v: %v", want, k.wanted.Source, err)
		}
	}
	k.err = fmt.Errorf("%w: it is generation 3", report.ErrOlder)
	if err := client.Want(t.Context(), report.Wanted{}); !errors.Is(err, report.ErrOlder) ||
		strings.Count(err.Error(), report.ErrOlder.Error()) != 1 || !strings.Contains(err.Error(), "generation 3") {
		t.Errorf("a refusal as older arrives as %v", err)
	}
	body, err := json.Marshal(report.Wanted{Source: report.Source{Object: "0a1b", Generation: 7}})
	if err != nil || strings.Contains(string(body), "0a1b") {
		t.Errorf("the body is %s, %v; want nothing of the source in it", body, err)
	}
	long := report.Wanted{Source: report.Source{Object: strings.Repeat("a", 200)}}
	if err := client.Want(t.Context(), long); err == nil || errors.Is(err, report.ErrOlder) ||
		!strings.Contains(err.Error(), "more than") {
		t.Errorf("a UID of 200 characters: %v", err)
	}
}

// TestRefuses checks that the server refuses everything that cannot come from a NodeStorage.
func TestRefuses(t *testing.T) {
	k, client := start(t)
	deletions := func(id, volume string) report.Wanted {
		return report.Wanted{Deletions: []report.Deletable{{ID: id, Volume: volume, Method: "zero"},
			{ID: id + "2", Volume: volume + "2", Method: "zero"}}}
	}
	twice := deletions("a", "v")
	twice.Deletions[1].Volume = "v"
	for says, w := range map[string]report.Wanted{
		"id is":     deletions("../../etc/passwd", "v"),
		"volume is": deletions("a", "../v"),
		"method":    {Deletions: []report.Deletable{{ID: "a", Volume: "v", Method: "rinse"}}},
		"twice":     twice,
		"at most":   {Offers: make([]report.Offer, report.Most+1)},
		"an offer":  {Offers: []report.Offer{{ID: "a", Volume: ""}}},
	} {
		if err := client.Want(t.Context(), w); err == nil || !strings.Contains(err.Error(), says) ||
			len(k.wanted.Deletions) > 0 {
			t.Errorf("%+v: %v, want %q in it", w, err, says)
		}
	}
}
