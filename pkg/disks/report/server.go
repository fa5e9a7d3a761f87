package report

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/stowage-csi/stowage/pkg/scrape"
)

// Keeper manages the disks.
type Keeper interface {
	// State returns the state once its revision differs from after, or the context ends.
	State(ctx context.Context, after string) State
	// Want takes the offers and the wanted deletions. If it returns no error, they outlive the process. It fails with
	// ErrOlder if another agent has read a newer state.
	Want(Wanted) error
}

const (
	statePath  = "/v1/state"
	wantedPath = "/v1/wanted"

	mostBytes = 1 << 20          // of a message to the server
	longPoll  = 50 * time.Second // how long a request for a change waits
	headers   = 10 * time.Second
	whole     = longPoll + headers // for a request with its answer, and until the next request
)

// Serve serves requests on the listener until the context ends.
func Serve(ctx context.Context, listener net.Listener, keeper Keeper) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+statePath, func(w http.ResponseWriter, r *http.Request) {
		waiting, cancel := context.WithTimeout(r.Context(), longPoll)
		defer cancel()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(keeper.State(waiting, r.URL.Query().Get("after"))) // An error means a lost client.
	})
	mux.HandleFunc("PUT "+wantedPath, func(w http.ResponseWriter, r *http.Request) {
		var wanted Wanted
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBytes))
		decoder.DisallowUnknownFields()
		source, err := sourceOf(r.URL.Query())
		if err = errors.Join(err, decoder.Decode(&wanted), wanted.Check()); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		wanted.Source = source
		switch err = keeper.Want(wanted); {
		case errors.Is(err, ErrOlder):
			http.Error(w, err.Error(), http.StatusConflict)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	// The client is not trusted: it must not take descriptors or memory from the work on disks.
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headers, ReadTimeout: whole, WriteTimeout: whole,
		IdleTimeout: whole, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // This closes the listener; clients send again.
	defer stop()
	if err := server.Serve(scrape.Limit(listener)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
