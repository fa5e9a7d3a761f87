package backendtest

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Over returns a Harness that opens a definition, each time with a new data directory, the default configuration and
// "node-a" as this node's ID. It also checks the backend's log and the surroundings of its data directory. The caller
// must set Spec.
//
// The function configure may change the options before they are used; nil changes nothing.
func Over(definition backends.Definition, configure func(tb testing.TB, options *backends.Options)) Harness {
	used := map[*backends.Instance]backends.Options{}
	start := func(tb testing.TB, options backends.Options) *backends.Instance {
		tb.Helper()
		instance := open(tb, definition, options)
		used[instance] = options
		return instance
	}
	return Harness{
		Definition: definition,
		Open: func(tb testing.TB) *backends.Instance {
			tb.Helper()
			options := defaults(tb, definition)
			if configure != nil {
				configure(tb, &options)
			}
			return start(tb, options)
		},
		Reopen: func(tb testing.TB, instance *backends.Instance) *backends.Instance {
			tb.Helper()
			closeInstance(tb, instance)
			return start(tb, used[instance])
		},
		reopenWith: func(tb testing.TB, instance *backends.Instance, change func(*backends.Options)) *backends.Instance {
			tb.Helper()
			closeInstance(tb, instance)
			options := used[instance]
			change(&options)
			again := open(tb, definition, options)
			used[again] = used[instance]
			return again
		},
	}
}

func defaults(tb testing.TB, definition backends.Definition) backends.Options {
	tb.Helper()
	options := backends.Options{
		Driver:  definition.DriverName(),
		DataDir: guardedDir(tb),
		NodeID:  "node-a",
		Log:     slog.New(slog.NewTextHandler(watchedLog(tb), &slog.HandlerOptions{Level: slog.LevelDebug - 100})),
	}
	if definition.NewConfig != nil {
		options.Config = definition.NewConfig()
	}
	return options
}

func open(tb testing.TB, definition backends.Definition, options backends.Options) *backends.Instance {
	tb.Helper()
	instance, err := definition.Open(tb.Context(), options)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() { closeInstance(tb, instance) })
	return instance
}

// closeInstance closes an instance once.
func closeInstance(tb testing.TB, instance *backends.Instance) {
	tb.Helper()
	if err := Close(tb.Context(), instance); err != nil {
		tb.Errorf("Close: %v", err)
	}
	instance.Close = nil
}

// closeTime is longer than closing takes, unless something hangs.
const closeTime = 2 * time.Minute

// Close closes an instance, if it has a Close function, even if the context has ended. If it hangs, Close fails after a
// while.
func Close(ctx context.Context, instance *backends.Instance) error {
	if instance.Close == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return instance.Close(ctx)
}

// guardedDir returns a data directory and checks that nothing beside it changes.
func guardedDir(tb testing.TB) string {
	tb.Helper()
	outside := tb.TempDir()
	dir := filepath.Join(outside, "data")
	canary := filepath.Join(outside, "canary")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(canary, []byte("untouched"), 0o600); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		entries, err := os.ReadDir(outside)
		names := make([]string, len(entries))
		for i, entry := range entries {
			names[i] = entry.Name()
		}
		if err != nil || !slices.Equal(names, []string{"canary", "data"}) {
			tb.Errorf("beside the data directory there are now %q, %v: it had only a canary file there", names, err)
		}
		if text, err := os.ReadFile(canary); err != nil || string(text) != "untouched" {
			tb.Errorf("the canary file beside the data directory is now %q, %v", text, err)
		}
	})
	return dir
}

// watchedLog returns a log and checks that it does not contain the canary of the fingerprints.
func watchedLog(tb testing.TB) *logBuffer {
	tb.Helper()
	log := &logBuffer{}
	tb.Cleanup(func() {
		log.mu.Lock()
		defer log.mu.Unlock()
		if bytes.Contains(log.text.Bytes(), []byte(canary)) {
			tb.Errorf("the log shows a volume's fingerprint:\n%s", log.text.Bytes())
		}
	})
	return log
}

type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}
