package nfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/dirlock"
)

// ownerFile is where the name of this controller is in the data directory.
const ownerFile = "controller"

// openPermits reads the controller's name, or gives it one. That it cannot be kept costs a call that is turned away
// once. Kinds: Busy where another controller has the name.
func openPermits(options backends.Options) (*permits, error) {
	path := filepath.Join(options.DataDir, ownerFile)
	p := &permits{apart: apart, all: map[permitted]*permit{}}
	var err error
	if !options.NodeOnly { // A node leads nobody.
		if p.lock, err = lockName(path); backends.Is(err, backends.Busy) {
			return nil, err
		}
	}
	if err == nil { // A name that is not locked may be another's.
		p.owner = readName(path)
	}
	if p.owner != "" {
		return p, nil
	}
	p.owner = share.Random()
	if options.NodeOnly {
		return p, nil
	}
	if err == nil {
		err = os.WriteFile(path, []byte(p.owner), 0o600) // In place: the file is locked.
	}
	if err != nil {
		options.Log.Warn("the name of this controller cannot be kept: after a restart it turns a call away on each share",
			"path", path, "error", err)
	}
	return p, nil
}

// lockName keeps others from the file of the name, which it makes where it is not there. Of two controllers of one name
// each would take the other's permits for those of an earlier run of its own, and turn no late call away. Each would
// replace the other's note of shares, too. Not the directory is locked, which may be the kubelet's: anybody can lock
// that. Kinds: Busy.
func lockName(path string) (*os.File, error) {
	made, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = made.Close()
	}
	locked, lockErr := dirlock.Lock(path) // Also where nothing can be made, but the file is there.
	if lockErr == nil {
		return locked, nil
	}
	return nil, errors.Join(err, lockErr)
}

// readName is empty where there is no name, or half of one.
func readName(path string) string {
	text, err := os.ReadFile(path)
	name := string(text)
	if err != nil || len(name) != len(share.Random()) || strings.Trim(name, "0123456789abcdef") != "" {
		return ""
	}
	return name
}

// close lets another controller have the name.
func (p *permits) close() {
	if p.lock != nil {
		_ = p.lock.Close() // It was only locked.
	}
}
