package share

import (
	"crypto/rand"
	"errors"
	"io/fs"
)

// Mark is a file that shows through another Home whether that is the same one.
type Mark struct {
	name, text string
}

// Mark makes a mark. Whoever ends before it removes it leaves it to the janitor.
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

// Bears reports whether a mark is in this Home. A server may say of any name that it is there, but not what is in it.
func (h *Home) Bears(m Mark) (bool, error) {
	text, err := h.Read(Staging, m.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && string(text) == m.text, err
}

// Unmark removes a mark.
func (h *Home) Unmark(m Mark) error { return h.Remove(Staging, m.name) }
