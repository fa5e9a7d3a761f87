package faults_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/wire"
)

// api counts the requests that arrive, by path, and answers with the count.
type api struct {
	mu       sync.Mutex
	arrived  map[string]int
	notified chan string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	a.arrived[string(body)]++
	fmt.Fprintf(w, "%s %s: %d in a long enough answer", r.Header.Get("X-Test"), body, a.arrived[string(body)])
	select {
	case a.notified <- string(body):
	default:
	}
}

func (a *api) count(action string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.arrived[action]
}

func start(t *testing.T,
	seed uint64) (*api, *faults.Proxy, func(ctx context.Context, action string) (string, int, error)) {
	t.Helper()
	a := &api{arrived: map[string]int{}, notified: make(chan string, 1)}
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "the API's own words", status) }
	}
	proxy, err := faults.New("http://api.test", wire.Serve(t, a), faults.Dialect{
		Action:   func(_ *http.Request, body []byte) string { return string(body) },
		Throttle: answer(http.StatusServiceUnavailable), Fail: answer(http.StatusInternalServerError),
	}, seed)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: wire.Serve(t, proxy)}
	return a, proxy, func(ctx context.Context, action string) (string, int, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://proxy.test/", strings.NewReader(action))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Test", "header")
		response, err := client.Do(request)
		if err != nil {
			return "", 0, err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), response.StatusCode, err
	}
}

func TestEachFault(t *testing.T) {
	const whole = "header it: %d in a long enough answer"
	for _, row := range []struct {
		kind    faults.Kind
		arrives int
		status  int // 0 for a broken answer
		text    string
	}{
		{faults.None, 1, 200, fmt.Sprintf(whole, 1)},
		{faults.Throttle, 0, 503, "the API's own words\n"},
		{faults.Fail, 0, 500, "the API's own words\n"},
		{faults.FailAfter, 1, 500, "the API's own words\n"},
		{faults.LoseRequest, 0, 0, ""},
		{faults.LoseReply, 1, 0, ""},
		{faults.Duplicate, 2, 200, fmt.Sprintf(whole, 2)},
		{faults.Delay, 1, 200, fmt.Sprintf(whole, 1)},
		{faults.Truncate, 1, 0, ""},
	} {
		t.Run(string(row.kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, proxy, ask := start(t, 1)
				proxy.Script(faults.Rule{Action: "it", Times: 1, Kind: row.kind, Delay: 10 * time.Millisecond})
				text, status, err := ask(t.Context(), "it")
				if broken := err != nil; broken != (row.status == 0) || !broken && (status != row.status || text != row.text) {
					t.Errorf("got %q, %d, %v; want %q, %d", text, status, err, row.text, row.status)
				}
				if n := a.count("it"); n != row.arrives {
					t.Errorf("the request arrived %d times, want %d", n, row.arrives)
				}
				if _, status, err := ask(t.Context(), "it"); status != 200 || err != nil {
					t.Errorf("the next one got %d, %v", status, err)
				}
				if log := proxy.Log(); len(log) != 2 || log[0].Kind != row.kind || log[1].Kind != faults.None {
					t.Errorf("the log is %+v", log)
				}
			})
		})
	}
}

func TestScriptChoosesRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, proxy, ask := start(t, 1)
		proxy.Script(faults.Rule{Action: "a", Skip: 1, Times: 2, Kind: faults.Throttle},
			faults.Rule{Action: "b", Kind: faults.Fail})
		var have []int
		for _, action := range []string{"a", "b", "a", "c", "a", "a", "b"} {
			_, status, err := ask(t.Context(), action)
			if err != nil {
				t.Fatal(err)
			}
			have = append(have, status)
		}
		if want := []int{200, 500, 503, 200, 503, 200, 500}; !slices.Equal(have, want) {
			t.Errorf("the answers were %v, want %v", have, want)
		}
		proxy.Stop()
		if _, status, err := ask(t.Context(), "b"); status != 200 || err != nil || a.count("b") != 1 || proxy.Faults() != 4 {
			t.Errorf("after Stop: %d, %v, with %d faults; want 200 and 4", status, err, proxy.Faults())
		}
	})
}

func TestLateRequestArrivesWithoutItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, proxy, ask := start(t, 1)
		proxy.Script(faults.Rule{Times: 1, Kind: faults.Delay, Delay: 200 * time.Millisecond}, faults.Rule{Kind: faults.Hang})
		for _, action := range []string{"late", "never"} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, _, err := ask(ctx, action); err == nil || a.count(action) != 0 {
				t.Errorf("%s: %v, and it has arrived %d times", action, err, a.count(action))
			}
		}
		select {
		case action := <-a.notified:
			if action != "late" {
				t.Errorf("%q arrived", action)
			}
		case <-time.After(10 * time.Second):
			t.Error("the late request did not arrive")
		}
	})
}

func TestSeedRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(first, seed uint64) (kinds []faults.Kind) {
			_, proxy, ask := start(t, first)
			proxy.Seed(seed)
			proxy.Random(map[faults.Kind]int{faults.Throttle: 200, faults.LoseReply: 100, faults.Duplicate: 100,
				faults.Truncate: 100}, 0)
			for range 60 {
				_, _, _ = ask(t.Context(), "it")
			}
			for _, event := range proxy.Log() {
				kinds = append(kinds, event.Kind)
			}
			if n := proxy.Faults(); n < 10 || n > 50 {
				t.Errorf("%d of 60 requests met a fault, want about 30", n)
			}
			return kinds
		}
		if !slices.Equal(run(7, 7), run(8, 7)) || slices.Equal(run(7, 7), run(7, 8)) {
			t.Error("a seed's faults are not its own")
		}
	})
}
