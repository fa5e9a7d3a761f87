package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The data in a directory: a file, another one in a subdirectory, and a link out of the volume.
const (
	directoryLink  = "/etc/passwd"
	directoryOwner = 4242
)

func writeDirectory(dir string, text []byte) error {
	sub := filepath.Join(dir, "sub")
	if err := os.RemoveAll(sub); err != nil {
		return err
	}
	if err := os.Mkdir(sub, 0o750); err != nil {
		return err
	}
	if err := os.Symlink(directoryLink, filepath.Join(sub, "link")); err != nil {
		return err
	}
	for _, file := range []string{filepath.Join(dir, "file"), filepath.Join(sub, "file")} {
		if err := os.WriteFile(file, text, 0o640); err != nil {
			return err
		}
	}
	return os.Chown(sub, directoryOwner, directoryOwner)
}

func readDirectory(dir string) ([]byte, error) {
	sub := filepath.Join(dir, "sub")
	info, err := os.Lstat(sub)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, onlyKnown(dir)
	}
	if err != nil {
		return nil, err
	}
	if owner := ownerOf(info); info.Mode() != os.ModeDir|0o750 || owner != directoryOwner {
		return nil, fmt.Errorf("the subdirectory has the mode %v and the owner %d, want %v and %d", info.Mode(), owner,
			os.ModeDir|0o750, directoryOwner)
	}
	if link, err := os.Readlink(filepath.Join(sub, "link")); err != nil {
		return nil, err
	} else if link != directoryLink {
		return nil, fmt.Errorf("the symbolic link leads to %q, want %q", link, directoryLink)
	}
	text, err := os.ReadFile(filepath.Join(dir, "file"))
	if err != nil {
		return nil, err
	}
	if copied, err := os.ReadFile(filepath.Join(sub, "file")); err != nil {
		return nil, err
	} else if !bytes.Equal(copied, text) {
		return nil, fmt.Errorf("the file in the subdirectory has %q, want %q", copied, text)
	}
	return text, onlyKnown(dir)
}

// onlyKnown checks that the directory has only the entries of writeDirectory, and those that filesystems create
// themselves.
func onlyKnown(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "file", "sub", "lost+found":
		default:
			return fmt.Errorf("the directory has an entry %q, which nobody made", entry.Name())
		}
	}
	return nil
}

func ownerOf(info os.FileInfo) uint32 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Uid
	}
	return 0
}
