package inside

import (
	"errors"
	"testing"
)

// These tests run on the host.
func TestOutside(t *testing.T) {
	if err := Check(); !errors.Is(err, ErrOutside) {
		t.Errorf("got %v, want ErrOutside", err)
	}
}
