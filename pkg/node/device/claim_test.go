package device

import (
	"fmt"
	"testing"
	"time"
)

// claimUntil retries until it has claimed the loop device that name returns. Other processes claim a device while they
// attach something to it, and may be told that the same one is free.
func (c control) claimUntil(t *testing.T, name func() (int, error)) (number int) {
	t.Helper()
	for end := time.Now().Add(enough); ; {
		number, err := name()
		if err != nil {
			t.Fatal(err)
		}
		claimed, err := c.claim(number)
		switch {
		case err != nil:
			t.Fatal(err)
		case claimed:
			return number
		case time.Now().After(end):
			t.Fatalf("loop device %d is claimed by somebody for %s", number, enough)
		}
	}
}

func newControl(t *testing.T) control {
	t.Helper()
	c, err := openControl()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A claimed loop device, whose attach may hang, is skipped and not even opened, because that would hang too. The claim
// ends with the descriptor.
func TestClaimedLoopIsPassedBy(t *testing.T) {
	path := image(t, mib)
	control := newControl(t)
	claimed := control.claimUntil(t, func() (int, error) { return control.free(false) })
	located, err := locateImage(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = located.Close() }() // O_PATH
	node, err := attach(t.Context(), located, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Close() }() // frees the device
	if node.Name() == fmt.Sprintf("/dev/loop%d", claimed) {
		t.Errorf("attached to %s, which is claimed", node.Name())
	}
	control.close()
	other := newControl(t)
	defer other.close()
	other.claimUntil(t, func() (int, error) { return claimed, nil })
}
