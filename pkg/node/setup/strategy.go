package setup

import "context"

// Strategy reports whether a setup has to run, and remembers that it ran.
type Strategy interface {
	// ShouldRun reports whether the setup has to run.
	ShouldRun(ctx context.Context) (bool, error)
	// Mark remembers that the setup succeeded. It is called after each success, even if the setup had nothing to do, and
	// never after a failure.
	Mark(ctx context.Context) error
}

// None is the strategy of a setup that always runs, because it has nothing to check or because it refreshes something
// and finds out itself whether there is work.
type None struct{}

// ShouldRun always returns true.
func (None) ShouldRun(context.Context) (bool, error) { return true, nil }

// Mark remembers nothing.
func (None) Mark(context.Context) error { return nil }

// Mountpoint is the strategy of a setup whose outcome is a mount: the mount is the mark.
type Mountpoint struct {
	// Mounted reports whether the setup's mount exists. Something else at its place is an error.
	Mounted func(ctx context.Context) (bool, error)
}

// ShouldRun reports whether the mount is missing.
func (m Mountpoint) ShouldRun(ctx context.Context) (bool, error) {
	mounted, err := m.Mounted(ctx)
	return err == nil && !mounted, err
}

// Mark has nothing to write: the mount is the mark.
func (Mountpoint) Mark(context.Context) error { return nil }
