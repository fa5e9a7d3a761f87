package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestHunks(t *testing.T) {
	diff := "--- a/p/a_test.go\n+++ b/p/a_test.go\n@@ -1,2 +1 @@\n+x\n@@ -9,0 +12,3 @@ func TestB(t *testing.T) " +
		"{\n+y\n@@ -20 +22,0 @@\n-z\n"
	want := map[string][]lines{"p/a_test.go": {{1, 1}, {12, 14}, {22, 22}}}
	if got := hunks(diff); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestChanged changes a repository's tests in every way.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	const tests = "package p\n\nfunc TestA(t *testing.T) {\n\tfirst()\n}\n\nfunc TestB(t *testing.T) {\n}\n\nfunc " +
		"FuzzC(f *testing.F) {\n}\n"
	const helpers = "package p\n\nfunc first() { w.second() }\n\nfunc (w world) second() {\n}\n"
	write("p/a_test.go", tests)
	write("p/helpers_test.go", helpers)
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "a")
	git("config", "color.ui", "always")
	git("config", "diff.mnemonicPrefix", "true")
	git("config", "diff.renames", "true")
	for _, tt := range []struct {
		name, file, text string
		want             []batch
	}{
		{"a test", "p/a_test.go", strings.Replace(tests, "\tfirst", "\t_ = 1; first", 1), []batch{{"./p", "^(TestA)$"}}},
		{"a fuzz target", "p/a_test.go", strings.Replace(tests, "testing.F", "testing.X", 1), []batch{{"./p", "^(FuzzC)$"}}},
		{"outside of all", "p/a_test.go", tests + "\n// It is outside.\n", []batch{{"./p", "^(FuzzC|TestA|TestB)$"}}},
		{"a helper's helper in another file", "p/helpers_test.go",
			strings.Replace(helpers, "second() {\n", "second() {\n\t_ = 1\n", 1), []batch{{"./p", "^(TestA)$"}}},
		{"TestMain", "p/helpers_test.go", helpers + "\nfunc TestMain(m *testing.M) {}\n",
			[]batch{{"./p", "^(FuzzC|TestA|TestB)$"}}},
		{"a new file", "q/new_test.go", "package q\n\nfunc TestNew(t *testing.T) {}\n", []batch{{"./q", "^(TestNew)$"}}},
		{"nothing", "p/a.go", "package p\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(tt.file, tt.text)
			got, err := changed(t.Context(), "HEAD")
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
			git("stash", "-q", "-u")
		})
	}
	t.Run("a file that moved", func(t *testing.T) {
		git("mv", "p", "r")
		if got, err := changed(t.Context(), "HEAD"); err != nil || len(got) != 1 || got[0].pkg != "./r" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
