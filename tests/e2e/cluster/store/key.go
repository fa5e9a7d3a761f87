package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Key accumulates a hash of texts, files and folders.
type Key struct {
	sum hash.Hash
	err error
}

// NewKey returns the key of the texts.
func NewKey(texts ...string) *Key {
	k := &Key{sum: sha256.New()}
	return k.Text(texts...)
}

// Text adds texts.
func (k *Key) Text(texts ...string) *Key {
	for _, text := range texts {
		fmt.Fprintf(k.sum, "%d:%s", len(text), text)
	}
	return k
}

// Files adds the contents of files, and of all files in folders, with their names.
func (k *Key) Files(paths ...string) *Key {
	return k.walk(paths, func(string) bool { return true })
}

// Sources does the same as Files without Go's test files, which are in no program.
func (k *Key) Sources(paths ...string) *Key {
	return k.walk(paths, func(path string) bool { return !strings.HasSuffix(path, "_test.go") })
}

func (k *Key) walk(paths []string, wanted func(path string) bool) *Key {
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || !wanted(path) {
				return err
			}
			name, err := filepath.Rel(filepath.Dir(root), path)
			if err != nil {
				return err
			}
			return k.file(name, path)
		})
		if k.err == nil {
			k.err = err
		}
	}
	return k
}

func (k *Key) file(name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	k.Text(name, fmt.Sprint(info.Size()))
	_, err = io.Copy(k.sum, file)
	return err
}

// String returns the key: 16 hexadecimal digits.
func (k *Key) String() (string, error) {
	return hex.EncodeToString(k.sum.Sum(nil))[:16], k.err
}
