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

// DefaultSilence is how long a guest that is up may say nothing: it says every few seconds that it is alive.
const DefaultSilence = 90 * time.Second

// offLimit is how long powering off may take.
const offLimit = 2 * time.Minute

// What may become of a guest.
var (
	ErrNotUp = errors.New("the guest did not come up") // as with an accelerator that does not work
	ErrHangs = errors.New("the guest hangs")
	ErrDied  = errors.New("the guest died")
)

// Wait calls take with the guest's frames until it has powered off. The guest must be up within bootLimit. What goes
// wrong ends the guest; the error then shows the end of its console.
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
		continue // What was on its way must not hold the receiver up.
	}
	if err != nil {
		return fmt.Errorf("%w\nThe end of the guest's console:\n%s", err, tail(g.console, 80))
	}
	return g.qemu.Err()
}

// follow returns when the guest has said that it is done.
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

// died says why there are no more frames.
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
