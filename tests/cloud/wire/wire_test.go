package wire_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/wire"
)

// Time is simulated on both ends of the wire: an answer that takes an hour arrives at once, and the server notices that
// a client has left.
func TestSimulatedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan time.Duration, 1)
		client := http.Client{Transport: wire.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			began := time.Now()
			select {
			case <-time.After(time.Hour):
				_, _ = w.Write(body)
			case <-r.Context().Done():
				left <- time.Since(began)
			}
		}))}
		began := time.Now()
		response, err := client.Do(post(t.Context(), t))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if _ = response.Body.Close(); string(text) != "hello" || err != nil || time.Since(began) != time.Hour {
			t.Errorf("the answer is %q (%v) after %v, want hello after an hour", text, err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := client.Do(post(ctx, t)); err == nil {
			t.Error("a request whose client leaves succeeds")
		}
		if after := <-left; after != time.Minute {
			t.Errorf("the server notices after %v, want a minute", after)
		}
	})
}

func post(ctx context.Context, t *testing.T) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://anywhere/", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	return request
}
