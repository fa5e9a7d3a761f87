package printable_test

import (
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/printable"
)

func TestEvent(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"a\n\x1b[31m":                   `a\n\x1b[31m`,
		strings.Repeat("a", 1000):       strings.Repeat("a", 1000),
		strings.Repeat("a", 1001):       strings.Repeat("a", 1000),
		"a" + strings.Repeat("é", 1000): "a" + strings.Repeat("é", 499), // It is cut between characters.
	} {
		if got := printable.Event(text); got != want {
			t.Errorf("%.20q has %d bytes: it is %q, want %q", text, len(text), got, want)
		}
	}
}
