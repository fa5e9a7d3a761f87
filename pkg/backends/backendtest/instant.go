package backendtest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// ofOneInstant copies volumes while a writer counts in them. The writer writes each number first to the file "first" of
// the first volume and then to the file "second" of the last one. So at every instant the first number is equal to the
// second or one ahead. A backend may refuse with InUse.
//
// The suite can only write to directories like a workload: writers of a device need a node that attaches it, which does
// not exist here.
func (w *world) ofOneInstant(volumes int, take func(volumes []string, round string) ([]*backends.Volume, error)) {
	w.Helper()
	var handles, dirs []string
	for _, name := range []string{"first", "second"}[:volumes] {
		v := w.volume(name)
		if !w.offers(v, backends.Mount) {
			return
		}
		source, err := w.n.Source(w.ctx(), w.attach(v, backends.Mount))
		w.must("Source", err)
		dir, ok := source.(backends.Directory)
		if !ok {
			w.Logf("a %T cannot be written to without a node", source)
			return
		}
		handles, dirs = append(handles, v.Handle), append(dirs, dir.Path)
		w.must("writing", writeBulk(dir.Path))
	}
	stop := w.count(filepath.Join(dirs[0], "first"), filepath.Join(dirs[len(dirs)-1], "second"))
	defer stop()
	for _, round := range []string{"round 1", "round 2", "round 3", "round 4"} {
		copies, err := take(handles, round)
		if err != nil {
			w.fails("copying a volume in use", err, backends.InUse)
			break
		}
		w.countsAgree(copies)
	}
	stop()
	for _, handle := range handles {
		w.leave(handle)
	}
}

// writeBulk creates so many files that the writer gets a turn during the copy.
func writeBulk(dir string) error {
	for i := range 128 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("bulk ", i)), make([]byte, 4096), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) offers(v *backends.Volume, as backends.AccessType) bool {
	for _, have := range w.spec(v.Name).Access.Types {
		if have == as {
			return true
		}
	}
	return false
}

// count starts the writer and returns a function that stops it.
func (w *world) count(first, second string) (stop func()) {
	w.Helper()
	var files [2]*os.File
	for i, path := range []string{first, second} {
		file, err := os.Create(path)
		w.must("making a file", err)
		files[i] = file
	}
	done, ended := make(chan struct{}), make(chan struct{})
	started := make(chan struct{})
	go func() {
		defer close(ended)
		for n := uint64(1); ; n++ {
			for _, file := range files {
				if _, err := file.WriteAt(binary.BigEndian.AppendUint64(nil, n), 0); err != nil {
					w.Errorf("writing to a volume in use: %v", err)
					return
				}
			}
			if n == 1 {
				close(started)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	select {
	case <-started:
	case <-ended:
	}
	return sync.OnceFunc(func() {
		close(done)
		<-ended
		for _, file := range files {
			w.must("closing a file", file.Close())
		}
	})
}

// countsAgree checks that the copies of the two files show the same instant.
func (w *world) countsAgree(copies []*backends.Volume) {
	w.Helper()
	first := w.counted(copies[0], "first")
	second := w.counted(copies[len(copies)-1], "second")
	if first != second && first != second+1 {
		w.Errorf("the copies are of different instants: the file that is written first has %d, the one that is written "+
			"second has %d", first, second)
	}
}

func (w *world) counted(v *backends.Volume, file string) uint64 {
	w.Helper()
	source, err := w.n.Source(w.ctx(), w.attach(v, backends.Mount))
	w.must("Source", err)
	dir, ok := source.(backends.Directory)
	if !ok {
		w.Fatalf("the source of a copy is %+v, want a directory as that of the original", source)
	}
	text, err := os.ReadFile(filepath.Join(dir.Path, file))
	w.must("reading the copy", err)
	w.leave(v.Handle)
	if len(text) != 8 {
		w.Fatalf("the copied file has %d bytes, want 8", len(text))
	}
	return binary.BigEndian.Uint64(text)
}
