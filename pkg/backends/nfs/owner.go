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

// ownerFile is the file with this controller's name in the data directory.
const ownerFile = "controller"

// openPermits reads the controller's name, or creates one. If it cannot be saved, the next start turns one call away on
// each share. Kinds: Busy where another controller has the name.
func openPermits(options backends.Options) (*permits, error) {
	path := filepath.Join(options.DataDir, ownerFile)
	p := &permits{apart: apart, all: map[permitted]*permit{}}
	var err error
	if !options.NodeOnly { // A node needs no permits.
		if p.lock, err = lockName(path); backends.Is(err, backends.Busy) {
			return nil, err
		}
	}
	if err == nil { // Without the lock, the name may be another controller's.
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

// lockName locks the file of the name, and creates it if it does not exist. If two controllers had one name, each would
// take the other's permits for those of its own earlier run and turn no late call away. Each would also replace the
// other's note of shares. The directory itself is not locked, because it may be the kubelet's, which any process can
// lock. Kinds: Busy.
func lockName(path string) (*os.File, error) {
	made, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = made.Close()
	}
	locked, lockErr := dirlock.Lock(path) // Locking also works where no file can be created but this one exists.
	if lockErr == nil {
		return locked, nil
	}
	return nil, errors.Join(err, lockErr)
}

// readName returns the name, or an empty text if the file has none or an incomplete one.
func readName(path string) string {
	text, err := os.ReadFile(path)
	name := string(text)
	if err != nil || len(name) != len(share.Random()) || strings.Trim(name, "0123456789abcdef") != "" {
		return ""
	}
	return name
}

// close releases the name for another controller.
func (p *permits) close() {
	if p.lock != nil {
		_ = p.lock.Close() // It was only locked.
	}
}
