package adversary

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// version is one state of a file or extent. Its number determines all of its bytes; number 0 is absence.
type version struct {
	id           uint64
	begun, ended time.Time // ended is zero until the write is known to be done
}

// contents records the writes to a volume, and their times.
type contents struct {
	mu    sync.Mutex
	files map[string][]version
}

// vector maps each file to its version.
type vector map[string]uint64

// serial numbers versions.
type serial struct{ last atomic.Uint64 }

func newContents(v vector) *contents {
	c := &contents{files: map[string][]version{}}
	for name, id := range v {
		c.files[name] = []version{{id: id}}
	}
	return c
}

// payload returns the bytes of a version in a file of that name.
func payload(name string, id uint64) []byte {
	size := map[byte]int{'r': 4096, 'b': 1 << 20}[name[0]]
	if size == 0 {
		size = 1000 + int(id%3000)
	}
	data := make([]byte, size)
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], id)
	_, _ = rand.NewChaCha8(seed).Read(data) // never fails
	binary.BigEndian.PutUint64(data, id)
	return data
}

// versionOf returns the version of some bytes, and fails if they are not exactly one.
func versionOf(name string, data []byte) (uint64, error) {
	if len(bytes.Trim(data, "\x00")) == 0 && name[0] == 'r' {
		return 0, nil
	}
	if len(data) < 8 {
		return 0, fmt.Errorf("%s has %d bytes, which nobody wrote", name, len(data))
	}
	id := binary.BigEndian.Uint64(data)
	if !bytes.Equal(data, payload(name, id)) {
		return 0, fmt.Errorf("%s has %d bytes that begin like version %d and are not it", name, len(data), id)
	}
	return id, nil
}

// begin notes that a write begins; the returned function notes that it has been synced.
func (c *contents) begin(name string, id uint64) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[name] = append(c.files[name], version{id: id, begun: time.Now()})
	at := len(c.files[name]) - 1
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.files[name][at].ended = time.Now()
	}
}

// copy returns the writes that are known now.
func (c *contents) copy() *contents {
	c.mu.Lock()
	defer c.mu.Unlock()
	other := newContents(nil)
	for name, list := range c.files {
		other.files[name] = slices.Clone(list)
	}
	return other
}

// instant checks that a vector existed at one instant between two times. A version exists from when its write begins,
// at the earliest, until the next one's has ended, at the latest.
func (c *contents) instant(v vector, from, to time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range v {
		if _, ok := c.files[name]; !ok {
			return fmt.Errorf("%s is there, which was never written: version %d", name, v[name])
		}
	}
	low, high, lowest, highest := from, to, "the call's beginning", "the answer"
	for name, list := range c.files {
		at := slices.IndexFunc(list, func(x version) bool { return x.id == v[name] })
		if at < 0 && v[name] != 0 {
			return fmt.Errorf("%s has version %d, which was never written there: it is of another volume or time", name, v[name])
		}
		if at >= 0 && list[at].begun.After(low) {
			low, lowest = list[at].begun, fmt.Sprintf("version %d of %s", v[name], name)
		}
		for _, next := range list[at+1:] {
			if next.begun.IsZero() {
				return fmt.Errorf("%s is missing: version %d was there from the first", name, next.id)
			}
			if !next.ended.IsZero() && next.ended.Before(high) {
				high, highest = next.ended, fmt.Sprintf("version %d of %s, over version %d,", next.id, name, v[name])
			}
		}
	}
	if low.After(high) {
		return fmt.Errorf("it is of no instant between call and answer: %s was begun %v after %s was done", lowest,
			low.Sub(high), highest)
	}
	return nil
}

// now checks that a vector is the present contents.
func (c *contents) now(v vector) error {
	t := time.Now()
	return c.instant(v, t, t)
}
