package standin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
)

// Servers is a directory with a directory for each server, which contains its shares.
type Servers string

// Open opens the directory that stands for the export.
func (s Servers) Open(_ context.Context, address export.Address) (*export.Root, error) {
	path, err := s.Path(address, "")
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, backends.Errorf(backends.Unavailable, "mounting %s: the server exports no such path: %w", address, err)
	}
	if err != nil {
		return nil, err
	}
	version := address.Version
	if version == "" {
		version = export.Versions()[0]
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &export.Root{Dir: dir, Version: version, Filesystem: fmt.Sprint(address.Server, " ", stat.Dev)}, nil
}

// Source returns the directory itself.
func (s Servers) Source(_ context.Context, address export.Address, dir string) (backends.Source, error) {
	path, err := s.Path(address, dir)
	return backends.Directory{Path: path}, err
}

// SameServer reports whether both names lead to one directory: a link is another name.
func (s Servers) SameServer(_ context.Context, one, other string) bool {
	these, err := os.Stat(filepath.Join(string(s), filepath.Base(one)))
	if err != nil {
		return one == other
	}
	those, err := os.Stat(filepath.Join(string(s), filepath.Base(other)))
	return err == nil && os.SameFile(these, those)
}

// Path returns the path of a directory of an export.
func (s Servers) Path(address export.Address, dir string) (string, error) {
	if !filepath.IsLocal(address.Server) || strings.Contains(address.Server, "/") {
		return "", backends.Errorf(backends.Unavailable, "the server %s cannot be found", address.Server)
	}
	return filepath.Join(string(s), address.Server, filepath.Join("/", address.Path), filepath.Join("/", dir)), nil
}
