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

// keep is how long an entry stays that is not used.
const keep = 7 * 24 * time.Hour

// Store is a folder of entries.
type Store struct {
	Dir   string
	Out   io.Writer // progress
	Label string    // whose progress it is: the first word of each line
}

// Item is what an entry holds and how it is made.
type Item struct {
	Name string // without slashes
	Key  string // a hash of all that it is made from
	// Make writes the file at path. Progress goes to the reporter.
	Make func(ctx context.Context, path string, progress *Progress) error
}

// Make returns the path of the item's entry, which it makes when the store does not hold it.
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

// used reports whether the entry is there, and notes that it is of use.
func used(path string) bool {
	now := time.Now()
	return os.Chtimes(path, now, now) == nil
}

// prune drops the entries of the name that nobody used for long.
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
