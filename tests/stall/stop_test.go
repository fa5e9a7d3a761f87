package stall_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/stall"
)

// A server that must stop at a request does not answer it first, even if its other threads receive the signal late.
func TestStopsBeforeItAnswers(t *testing.T) {
	server := stall.Serve(t)
	for range 100 {
		server.StopAt(t, stall.Lookup, 1)
		answered := make(chan error, 1)
		go func() {
			_, err := os.Lstat(filepath.Join(server.Dir, "nothing"))
			answered <- err
		}()
		for !server.Stopped(t) {
			<-time.After(time.Millisecond)
		}
		select {
		case err := <-answered:
			t.Fatalf("it answered %v, and stopped after that", err)
		// Stimulus: an answer needs a moment to arrive.
		case <-time.After(5 * time.Millisecond):
		}
		server.Continue(t)
		if err := <-answered; !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("it answered %v once it went on, want that there is no such file", err)
		}
	}
}

// A server that has stopped stays stopped until it continues, even if it was just starting threads, as a new server
// does with its first requests.
func TestStaysStopped(t *testing.T) {
	for range 10 {
		t.Run("", func(t *testing.T) {
			server := stall.Serve(t)
			for round := range 10 {
				server.StopAt(t, stall.Change, 1)
				var asked sync.WaitGroup
				for n := range round + 1 {
					asked.Go(func() {
						if err := os.Mkdir(filepath.Join(server.Dir, fmt.Sprint(round, "-", n)), 0o755); err != nil {
							t.Error(err)
						}
					})
				}
				for !server.Stopped(t) {
				}
				for range 20 {
					if !server.Stopped(t) {
						t.Error("it had stopped, and then had not")
						break
					}
				}
				server.Continue(t)
				asked.Wait()
			}
		})
	}
}

// A server that must stop at a request does so even if it gets requests all the time, and was just being told.
func TestStopsAmongRequests(t *testing.T) {
	server := stall.Serve(t)
	var asking sync.WaitGroup
	asking.Go(func() {
		for t.Context().Err() == nil { // until just before the cleanups
			if _, err := os.Lstat(server.Dir); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(asking.Wait)
	t.Cleanup(func() { server.Continue(t) }) // or a failure below leaves it stopped
	for range 300 {
		server.StopAt(t, stall.Attribute, 1)
		for !server.Stopped(t) {
			<-time.After(time.Millisecond)
		}
		server.Continue(t)
	}
}
