package metadata

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

var errWhy = errors.New("has no idea")

// answering is a source that answers at once.
func answering(name string, instance Instance, err error) Source {
	return Source{Name: name, Get: func(context.Context) (Instance, error) { return instance, err }}
}

// dropping is a source that never answers.
func dropping(name, why string) Source {
	return Source{Name: name, Silence: why, Get: func(ctx context.Context) (Instance, error) {
		<-ctx.Done()
		return Instance{}, fmt.Errorf("a client's own words: %w", ctx.Err())
	}}
}

// unasked is a source that must not be asked.
func unasked(t *testing.T) Source {
	return Source{Name: "the last", Get: func(context.Context) (Instance, error) {
		t.Error("the last source was asked")
		return Instance{}, errWhy
	}}
}

func TestFirst(t *testing.T) {
	m := Instance{ID: "m-1", Type: "small", Zone: "a", Region: "r"}
	from := func(name string) Instance { m := m; m.From = name; return m }
	for _, row := range []struct {
		name    string
		sources []Source
		want    Instance
		text    string // of the error
		took    time.Duration
	}{
		{"the first answers", []Source{answering("A", m, nil), unasked(t)}, from("A"), "", 0},
		{"the second answers", []Source{answering("A", m, errWhy), answering("B", m, nil), unasked(t)}, from("B"), "", 0},
		{"the first is silent", []Source{dropping("A", ""), answering("B", m, nil), unasked(t)}, from("B"), "",
			2 * time.Second},
		{"the first does not know the ID", []Source{answering("A", Instance{Zone: "a"}, nil), answering("B", m, nil)},
			from("B"), "", 0},
		{"the first knows another", []Source{Only("m-1", "--id", answering("A", Instance{ID: "m-2"}, nil)),
			Only("m-1", "--id", answering("B", m, nil))}, from("B"), "", 0},
		{"the first takes its time", []Source{{Name: "A", Timeout: time.Minute, Get: dropping("", "").Get},
			answering("B", m, nil)}, from("B"), "", time.Minute},
		{"there is none", nil, Instance{}, "find out which machine this is: ", 0},
		{
			"none answers", []Source{dropping("A", "it is far away"), dropping("B", ""),
				answering("C", m, fmt.Errorf("gave up: %w", ErrSilent)), answering("D", m, errWhy),
				answering("E", Instance{}, nil)},
			Instance{}, "find out which machine this is: A did not answer within 2s: it is far away; B did not answer within " +
				"2s; " +
				"C did not answer within 2s; D has no idea; E does not say the machine's ID", 4 * time.Second,
		},
		{
			"all know another", []Source{Only("m-9", "--id", answering("A", m, nil)),
				Only("m-9", "--id", answering("B", m, errWhy))},
			Instance{}, `find out which machine this is: A says that this is "m-1", and --id that it is "m-9"; B has no idea`, 0,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				have, err := First(t.Context(), row.sources...)
				if have != row.want || time.Since(began) != row.took {
					t.Errorf("got %+v after %v, want %+v after %v", have, time.Since(began), row.want, row.took)
				}
				switch {
				case row.want.ID != "" && err != nil:
					t.Error(err)
				case row.want.ID == "" && (!backends.Is(err, backends.Unavailable) || err.Error() != row.text):
					t.Errorf("it failed as %v with\n%v, want Unavailable with\n%s", backends.KindOf(err), err, row.text)
				}
			})
		})
	}
}

// TestReasonsAreKept checks that callers can find each reason in the error.
func TestReasonsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := First(t.Context(), dropping("A", ""), answering("B", Instance{}, errWhy))
		if !errors.Is(err, ErrSilent) || !errors.Is(err, errWhy) {
			t.Errorf("%v wraps ErrSilent: %t, the second reason: %t", err, errors.Is(err, ErrSilent), errors.Is(err, errWhy))
		}
	})
}

func TestFirstEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := First(ctx, dropping("A", ""), unasked(t))
		if !backends.Is(err, backends.Unavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want Unavailable for the deadline", err)
		}
	})
}

func TestOrchestrator(t *testing.T) {
	parse := func(id string) (Instance, error) {
		zone, id, ok := strings.Cut(id, "/")
		if !ok {
			return Instance{}, errors.New("has another cloud's providerID")
		}
		return Instance{ID: id, Zone: zone}, nil
	}
	for _, row := range []struct {
		info backends.NodeInfo
		err  error
		want Instance
		text string
	}{
		{backends.NodeInfo{ProviderID: "a/m-1", Type: "small", Zone: "b", Region: "r"}, nil,
			Instance{ID: "m-1", Type: "small", Zone: "a", Region: "r", From: "the Node"}, ""},
		{backends.NodeInfo{ProviderID: "/m-1", Zone: "b"}, nil, Instance{ID: "m-1", Zone: "b", From: "the Node"}, ""},
		{backends.NodeInfo{Type: "small", Zone: "b"}, nil, Instance{}, "the Node has no providerID"},
		{backends.NodeInfo{ProviderID: "m-1"}, nil, Instance{}, "the Node has another cloud's providerID"},
		{backends.NodeInfo{}, errWhy, Instance{}, "the Node has no idea"},
	} {
		get := func(context.Context) (backends.NodeInfo, error) { return row.info, row.err }
		have, err := First(t.Context(), Orchestrator(backends.NodeSource{Name: "the Node", Get: get}, parse))
		if have != row.want || (err == nil) != (row.text == "") || err != nil && !strings.Contains(err.Error(), row.text) {
			t.Errorf("%+v: got %+v, %v; want %+v, %q", row.info, have, err, row.want, row.text)
		}
	}
}
