package qemu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
)

// DefaultSilence is the longest silence of a running guest, which reports every few seconds that it is alive.
const DefaultSilence = 90 * time.Second

// offLimit is the limit for powering off.
const offLimit = 2 * time.Minute

// The ways in which a guest fails.
var (
	ErrNotUp = errors.New("the guest did not come up") // for example with an accelerator that does not work
	ErrHangs = errors.New("the guest hangs")
	ErrDied  = errors.New("the guest died")
)

// Wait calls take with the guest's frames until it has powered off. The guest must be up within bootLimit. A failure
// ends the guest; the error then shows the end of its console.
func (g *Guest) Wait(ctx context.Context, bootLimit time.Duration, take func(wire.Frame) error) error {
	err := g.follow(ctx, bootLimit, take)
	if err == nil {
		select {
		case <-g.qemu.Done():
		case <-time.After(offLimit):
			err = fmt.Errorf("the guest does not power off within %v", offLimit)
		}
	}
	g.qemu.Kill()
	g.shared.Kill()
	for range g.frames {
		continue // Frames that were already sent must not block the receiver.
	}
	if err != nil {
		return fmt.Errorf("%w\nThe end of the guest's console:\n%s", err, tail(g.console, 80))
	}
	return g.qemu.Err()
}

// follow returns when the guest has reported that it is done.
func (g *Guest) follow(ctx context.Context, bootLimit time.Duration, take func(wire.Frame) error) error {
	silent := time.NewTimer(bootLimit)
	defer silent.Stop()
	up := false
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-silent.C:
			if !up {
				return fmt.Errorf("%w within %v", ErrNotUp, bootLimit)
			}
			return fmt.Errorf("%w: it said nothing for %v", ErrHangs, g.silence)
		case f, more := <-g.frames:
			if !more {
				return g.died(up)
			}
			up = true
			silent.Reset(g.silence)
			if f.Kind == wire.Broken {
				return fmt.Errorf("the guest cannot go on: %s", f.Text)
			}
			if err := take(f); err != nil || f.Kind == wire.Done {
				return err
			}
		}
	}
}

// died returns the reason for the end of the frames.
func (g *Guest) died(up bool) error {
	if err := <-g.received; err != nil {
		return err
	}
	<-g.qemu.Done()
	what := ErrDied
	if !up {
		what = fmt.Errorf("%w: it died", ErrNotUp)
	}
	if g.qemu.Err() != nil {
		return fmt.Errorf("%w: QEMU ended with %w: %s", what, g.qemu.Err(), tail(g.log, 10))
	}
	return what
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
