package local

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// explain adds the pool's problem to an error, if the pool has one.
func (p *pool) explain(err error) error {
	if problem := p.problem(); problem != nil {
		return backends.Errorf(backends.Unavailable, "%s: %w", problem.message, err)
	}
	return err
}

// problem describes what is wrong with a pool; nil if nothing is.
type problem struct {
	reason  string // one CamelCase word
	message string // a sentence
	// readable reports whether the contents can still be read.
	readable bool
}

// problem checks the pool's directory.
func (p *pool) problem() *problem {
	now, err := os.Stat(p.path)
	if err != nil {
		return &problem{
			reason:  "PoolMissing",
			message: fmt.Sprintf("the directory %s of pool %q is gone: is its filesystem mounted? (%v)", p.path, p.name, err),
		}
	}
	if !os.SameFile(now, p.self) {
		return &problem{
			reason: "PoolReplaced",
			message: fmt.Sprintf("the directory %s of pool %q is not the one that it was at start: is its filesystem mounted?",
				p.path, p.name),
		}
	}
	if err := unix.Access(p.folder(volumesFolder), unix.W_OK); err != nil {
		return &problem{
			reason: "PoolNotWritable", readable: true,
			message: fmt.Sprintf("the directory %s of pool %q cannot be written to: %v", p.path, p.name, err),
		}
	}
	return nil
}
