package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const profile = `mode: atomic
m/pkg/a/x.go:1.1,2.2 8 0
m/pkg/a/x.go:3.1,4.2 2 1
m/pkg/a/b/y.go:1.1,2.2 10 3
m/pkg/a/suite/z.go:1.1,2.2 90 0
m/pkg/a/x.go:1.1,2.2 8 5
`

func TestRun(t *testing.T) {
	tests := []struct {
		name, profile string
		floors        []string
		floor         float64
		err, out      string
	}{
		{"blocks of two binaries count once", profile, []string{"pkg/a"}, 100, "", "100.0 %          10  m/pkg/a\n"},
		{"packages below count too", profile, []string{"pkg/a/..."}, 100, "",
			"100.0 %          20  pkg/a/...: ok, floor 100 %"},
		{"too low", strings.TrimSuffix(profile, "m/pkg/a/x.go:1.1,2.2 8 5\n"), []string{"pkg/a", "pkg/a/b"}, 85,
			"below 85 %: pkg/a", "20.0 %          10  pkg/a: LOW"},
		{"no such package", profile, []string{"pkg/c"}, 85, "below 85 %: pkg/c", "pkg/c: LOW"},
		{"not a profile", "mode: set\nhello\n", []string{"pkg/a"}, 85, "not a line of a cover profile", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "profile")
			if err := os.WriteFile(file, []byte(tt.profile), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := run(&out, file, tt.floors, []string{"a/suite"}, tt.floor)
			if got := text(err); (tt.err == "") != (got == "") || !strings.Contains(got, tt.err) {
				t.Errorf("got error %q, want %q", got, tt.err)
			}
			if !strings.Contains(out.String(), tt.out) {
				t.Errorf("got output %q, want %q in it", out.String(), tt.out)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
