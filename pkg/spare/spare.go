package spare

import (
	"bytes"
	"slices"
	"sync"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// pages is the number of notes, plus one page for the next note: more than most nodes have volumes in use.
const pages = 256

// Room is a file with room for notes. Its methods may be called from many goroutines. A nil Room has no room and no
// notes.
type Room struct {
	path string

	mu     sync.Mutex
	made   bool            // whether there was room for it
	unread error           // why the file could not be read; nil if its notes are known
	used   [pages]string   // the key of each page; empty for a free page
	notes  map[string]page // the latest note of each key
	turn   uint64          // of the latest note
}

// Put writes the note of a key and replaces an earlier one. Kinds: Exhausted when there is no room for it; Unavailable
// when the notes are unknown, or this one cannot be written, after which the note is the one before or the new one.
func (r *Room) Put(key string, note []byte) error {
	if r == nil {
		return noRoom()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.known(); err != nil {
		return err
	}
	if !r.made {
		return noRoom()
	}
	at, ok := r.free(key)
	if !ok {
		return failure.Errorf(failure.Exhausted,
			"all the room that was kept, for %d notes, is taken by others: free some on the disk", pages-1)
	}
	next := page{turn: r.turn + 1, key: key, note: bytes.Clone(note)}
	data, err := next.encode()
	if err != nil {
		return err
	}
	r.used[at] = key
	if err := r.write(at, data); err != nil {
		_ = r.clear(at) // If it stays, it goes with the key.
		return err
	}
	r.notes[key], r.turn = next, next.turn
	r.clearOthers(key, at)
	return nil
}

// free returns a free page. The last one is reserved for changes of existing notes.
func (r *Room) free(key string) (at int, ok bool) {
	at = slices.Index(r.used[:], "")
	if at < 0 || !slices.Contains(r.used[:], key) && !slices.Contains(r.used[at+1:], "") {
		return 0, false
	}
	return at, true
}

// Drop removes the note of a key; a missing note is no error. Kinds: Unavailable when it may be there still.
func (r *Room) Drop(key string) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.known(); err != nil {
		return err
	}
	delete(r.notes, key)
	for at, whose := range r.used {
		if whose != key {
			continue
		}
		if err := r.clear(at); err != nil {
			return err
		}
	}
	return nil
}

// Get returns the note of a key, or nil if there is none. Kinds: Unavailable when the notes are unknown.
func (r *Room) Get(key string) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.known(); err != nil {
		return nil, err
	}
	return r.notes[key].note, nil
}

// Notes returns all notes by their keys. Kinds: Unavailable when the notes are unknown.
func (r *Room) Notes() (map[string][]byte, error) {
	all := map[string][]byte{}
	if r == nil {
		return all, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.known(); err != nil {
		return nil, err
	}
	for key, p := range r.notes {
		all[key] = p.note
	}
	return all, nil
}

func noRoom() error {
	return failure.Errorf(failure.Exhausted, "there is no room that was kept for it either: free some on the disk")
}
