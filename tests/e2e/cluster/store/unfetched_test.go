package store

import (
	"errors"
	"strings"
	"testing"
)

// TestUnfetched distinguishes network failures from the tree's own mistakes, which both look like failed downloads.
func TestUnfetched(t *testing.T) {
	for text, infra := range map[string]bool{
		"dial tcp: connection refused":                       true,
		"reading https://proxy/m/@v/v1.0.0.zip: 502":         true,
		"m@v9.9.9: invalid version: unknown revision v9.9.9": false,
		"verifying m@v1.0.0: checksum mismatch":              false,
		"write /x: no space left on device":                  false,
		"exit status 100: E: Unable to locate package grepp": false,
		"exit status 1: E: No such script: /x/bookwurm":      false,
		"exit status 1: E: Couldn't find these debs: grepp":  false,
		"exit status 1: E: Failed getting release file http": true,
	} {
		cause := errors.New(text)
		if err := Unfetched(cause); strings.HasPrefix(err.Error(), "INFRA: ") != infra || !errors.Is(err, cause) {
			t.Errorf("%q becomes %q, want it to be of the weather: %t", text, err, infra)
		}
	}
}
