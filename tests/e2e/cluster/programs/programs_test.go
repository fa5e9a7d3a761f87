package programs

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

func TestArguments(t *testing.T) {
	for _, test := range []struct {
		program Program
		want    string
	}{
		{
			Program{Package: "./a", Variables: []string{"main.version"}},
			"build -v -mod=readonly -trimpath -buildvcs=false -ldflags '-s -w -X main.version=v1' -o out ./a",
		},
		{
			Program{Package: ".", Tags: "x y", Cgo: true},
			"build -v -mod=readonly -trimpath -buildvcs=false -ldflags '-s -w -extldflags -static' -tags 'x y' -o out .",
		},
		{
			Program{Package: "b/c", Test: true},
			"test -c -vet=off -mod=readonly -trimpath -buildvcs=false -ldflags '-s -w' -o out b/c",
		},
	} {
		var quoted []string
		for _, argument := range test.program.arguments("v1", "out") {
			if strings.Contains(argument, " ") {
				argument = "'" + argument + "'"
			}
			quoted = append(quoted, argument)
		}
		if got := strings.Join(quoted, " "); got != test.want {
			t.Errorf("%+v is built with\n%s, not\n%s", test.program, got, test.want)
		}
	}
}

// tools creates a tools module without requirements.
func tools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/tools\n\ngo 1.26\n",
		"go.sum": "",
		"hello/main.go": `package main

import "fmt"

var version string

func main() { fmt.Print("hello ", version) }
`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestBuild builds a program, finds it in the store, and rebuilds it when its source changes.
func TestBuild(t *testing.T) {
	dir := tools(t)
	entries := &store.Store{Dir: t.TempDir(), Out: io.Discard}
	b, err := NewBuilder(t.Context(), dir, entries)
	if err != nil {
		t.Fatal(err)
	}
	hello := Program{Name: "hello", Package: "./hello"}
	var paths []string
	for range 2 {
		path, err := b.Build(t.Context(), hello)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	source := filepath.Join(dir, "hello", "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { broken }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Build(t.Context(), hello); err == nil || !strings.Contains(err.Error(), "main.go:3") {
		t.Errorf("the error of a broken program is %v", err)
	}
	if paths[0] != paths[1] || !strings.HasPrefix(paths[0], filepath.Join(entries.Dir, "hello-")) {
		t.Errorf("it was built as %v", paths)
	}
}

// TestKeys checks that every input that changes the binary changes the key.
func TestKeys(t *testing.T) {
	b, err := NewBuilder(t.Context(), tools(t), &store.Store{Dir: t.TempDir(), Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, p := range []Program{
		{Name: "a", Package: "./hello"},
		{Name: "a", Package: "./hello", Tags: "x"},
		{Name: "a", Package: "./hello", Cgo: true},
		{Name: "a", Package: ".", Pinned: &Pinned{Module: "m", Version: "v1", Sum: "h1:1"}},
		{Name: "a", Package: ".", Pinned: &Pinned{Module: "m", Version: "v1", Sum: "h1:2"}},
	} {
		key, err := b.key(p)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(keys, key) {
			t.Errorf("%+v has the key of another program", p)
		}
		keys = append(keys, key)
	}
}

// TestNames checks that program names are unique: the store and a cluster's folder identify programs by name.
func TestNames(t *testing.T) {
	names := slices.Clone(Links())
	for _, p := range slices.Concat(Nodes(), Sidecars(), []Program{Agnhost()}, Suite()) {
		if slices.Contains(names, p.Name) {
			t.Errorf("there are two programs %s", p.Name)
		}
		names = append(names, p.Name)
	}
}
