package share

import (
	"crypto/rand"
	"errors"
	"io/fs"
)

// Mark is a file that shows whether another Home is the same one.
type Mark struct {
	name, text string
}

// Mark creates a mark. A process that ends before removing it leaves it to the janitor.
func (h *Home) Mark() (Mark, error) {
	draft, err := h.Draft("same")
	if err != nil {
		return Mark{}, err
	}
	m := Mark{draft.Name(), rand.Text()}
	if err := draft.write([]byte(m.text), true); err != nil {
		return Mark{}, errors.Join(err, draft.Drop())
	}
	return m, nil
}

// Bears reports whether this Home has a mark. A server may pretend that any name exists, but does not know the file's
// contents.
func (h *Home) Bears(m Mark) (bool, error) {
	text, err := h.Read(Staging, m.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && string(text) == m.text, err
}

// Unmark removes a mark.
func (h *Home) Unmark(m Mark) error { return h.Remove(Staging, m.name) }
