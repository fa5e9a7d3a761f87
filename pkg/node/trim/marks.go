package trim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// marks are empty files, one per volume, whose times say when the volume was last trimmed. They outlive the staging,
// because a volume that is used for an hour a day must be trimmed too.
type marks struct{ dir string }

// kept is how long a mark is kept: longer than any interval.
const kept = 2 * 2160 * time.Hour

func (m marks) path(volume string) string {
	sum := sha256.Sum256([]byte(volume))
	return filepath.Join(m.dir, hex.EncodeToString(sum[:16]))
}

func (m marks) read(volume string) (last time.Time, ok bool) {
	info, err := os.Stat(m.path(volume))
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

func (m marks) write(volume string, at time.Time) error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	path := m.path(volume)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Chtimes(path, at, at))
}

// Prune removes the marks of volumes that have not been trimmed, and so have not been here, for long.
func (s *Schedule) Prune(now time.Time) {
	entries, err := os.ReadDir(s.marks.dir)
	if err != nil {
		return // there is none yet
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > kept {
			_ = os.Remove(filepath.Join(s.marks.dir, e.Name())) // the next start tries again
		}
	}
}

// spread returns a part of the interval that is constant for a volume and differs between volumes.
func spread(volume string, interval time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(volume))
	return time.Duration(binary.BigEndian.Uint64(sum[16:]) % uint64(max(interval, 1)))
}
