package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keep is the time after which an unused entry is removed.
const keep = 7 * 24 * time.Hour

// Store is a folder of entries.
type Store struct {
	Dir   string
	Out   io.Writer // progress
	Label string    // the first word of each line of progress
}

// Item describes an entry and how to build it.
type Item struct {
	Name string // without slashes
	Key  string // a hash of its inputs
	// Make writes the file at path, and its output to progress.
	Make func(ctx context.Context, path string, progress *Progress) error
}

// Make returns the path of the item's entry, and builds it if the store does not have it.
func (s *Store) Make(ctx context.Context, item Item) (string, error) {
	path := filepath.Join(s.Dir, item.Name+"-"+item.Key)
	if used(path) {
		return path, nil
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := Lock(ctx, filepath.Join(s.Dir, "."+item.Name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if used(path) {
		return path, nil
	}
	if err := s.make(ctx, item, path); err != nil {
		return "", fmt.Errorf("make %s: %w", item.Name, err)
	}
	return path, s.prune(item.Name)
}

func (s *Store) make(ctx context.Context, item Item, path string) error {
	progress := newProgress(s.Out, s.Label, item.Name)
	defer progress.stop()
	fresh := path + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := item.Make(ctx, fresh, progress); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	progress.done()
	return nil
}

// used reports whether the entry exists, and updates its time of last use.
func used(path string) bool {
	now := time.Now()
	return os.Chtimes(path, now, now) == nil
}

// prune removes the entries of the name that were not used for long.
func (s *Store) prune(name string) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		key, ok := strings.CutPrefix(entry.Name(), name+"-")
		info, err := entry.Info()
		if !ok || strings.Contains(key, "-") || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if time.Since(info.ModTime()) > keep {
			if err := os.RemoveAll(filepath.Join(s.Dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
