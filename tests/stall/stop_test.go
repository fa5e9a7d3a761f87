package stall_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/stall"
)

// A server that is to stop at a request does not answer it first, also where its other threads are slow to hear of it.
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
		// Stimulus: an answer that was given needs a moment to get here.
		case <-time.After(5 * time.Millisecond):
		}
		server.Continue(t)
		if err := <-answered; !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("it answered %v once it went on, want that there is no such file", err)
		}
	}
}
