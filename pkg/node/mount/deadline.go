package mount

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// outcome is how a system call that yields a descriptor ended.
type outcome struct {
	fd  int
	err error
}

// abandonable runs a call that may hang in the kernel and returns when it ends or the context does,
// whichever is first. A descriptor that comes too late is closed. Kinds: Unavailable for the context's
// end, else the call's own.
func abandonable(ctx context.Context, call func() (fd int, err error)) (int, error) {
	if err := ctx.Err(); err != nil {
		return -1, backends.Errorf(backends.Unavailable, "not begun: %w", err)
	}
	done := make(chan outcome)
	go func() {
		fd, err := call()
		select {
		case done <- outcome{fd, err}:
		case <-ctx.Done():
			if err == nil && fd >= 0 {
				closeFd(fd)
			}
		}
	}()
	select {
	case o := <-done:
		return o.fd, o.err
	case <-ctx.Done():
		return -1, backends.Errorf(backends.Unavailable, "given up, the kernel has not answered yet: %w", ctx.Err())
	}
}
