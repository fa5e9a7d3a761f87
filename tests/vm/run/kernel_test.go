package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRelease(t *testing.T) {
	header := make([]byte, 0x210)
	header[0x20e] = 0x20
	for _, tt := range []struct{ file, want, problem string }{
		{string(header) + strings.Repeat("x", 0x10) + "6.1.0-44-cloud-amd64 (debian-kernel) #1 SMP\x00rest",
			"6.1.0-44-cloud-amd64", ""},
		{"short", "", "it has 5 bytes"},
		{string(header), "", "does not say its release"},
	} {
		path := filepath.Join(t.TempDir(), "vmlinuz")
		if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := release(path)
		if got != tt.want || (err == nil) != (tt.problem == "") ||
			err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("got %q and %v, want %q and %q", got, err, tt.want, tt.problem)
		}
	}
}
