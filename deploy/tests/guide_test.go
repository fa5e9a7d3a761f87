package tests

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestGuideWarnsOfHandles checks that the guide which the examples' directory pool is from says what a pod can reach
// from it, and which kind of pool to take instead. That it can is shown by TestHandlesReachBeyondDirectories in
// tests/hostile.
func TestGuideWarnsOfHandles(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		said := true
		for _, word := range []string{"open_by_handle_at", "CAP_DAC_READ_SEARCH", `directory(\x60)? pool`,
			`image(\x60)? pool`} {
			said = said && regexp.MustCompile(word).MatchString(paragraph)
		}
		if said {
			return
		}
	}
	t.Error("no paragraph of docs/guides/install.md says that a directory pool lets handles reach the node's files, and " +
		"an image pool does not")
}
