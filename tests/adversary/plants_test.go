package adversary

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var planting = flag.Bool("plants", false, "plant each defect of plants/ into the code, and look whether it is found; nothing else")

// plant is a defect that is put into the code: a patch, with a few lines before it that say where it is looked for.
type plant struct {
	setup, profile string
	seed           string         // the first, where a defect needs a rare schedule; empty for 1
	violation      *regexp.Regexp // how it shows
	files          []string       // that the patch changes
}

// plantTime is how long a planted defect is looked for.
const plantTime = 4 * time.Minute

// TestPlants shows that the adversary finds what it is there for: each planted defect, within a time. Without -plants it
// shows only that each can still be planted: its patch fits the code, which builds with it.
func TestPlants(t *testing.T) {
	patches, err := filepath.Glob("plants/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("there are %d plants: %v", len(patches), err)
	}
	for _, patch := range patches {
		t.Run(strings.TrimSuffix(filepath.Base(patch), ".patch"), func(t *testing.T) {
			p := read(t, patch)
			if overlay := p.overlay(t, patch); *planting {
				p.isFound(t, overlay)
			} else {
				tool(t, root(t), "go", append([]string{"build", "-overlay", overlay}, p.packages()...)...)
			}
		})
	}
}

// packages are those that the patch changes.
func (p plant) packages() (dirs []string) {
	for _, file := range p.files {
		dirs = append(dirs, "./"+filepath.Dir(file))
	}
	return dirs
}

// isFound looks for the defect.
func (p plant) isFound(t *testing.T, overlay string) {
	t.Helper()
	program := filepath.Join(filepath.Dir(overlay), "planted.test")
	tool(t, root(t), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./tests/adversary")
	began := time.Now()
	args := []string{
		"-test.v", "-test.run", "^TestAdversary$", "-setup", p.setup, "-profile", p.profile,
		"-budget", cmp.Or(*budget, plantTime).String(), "-shrink", "0s", "-hasty",
	}
	if p.seed != "" {
		args = append(args, "-seed", p.seed)
	}
	output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	_, failed := errors.AsType[*exec.ExitError](err)
	found := p.violation.FindString(string(output))
	if !failed || found == "" {
		t.Fatalf("not found in %v: %v\n%s", time.Since(began), err, output)
	}
	line := regexp.MustCompile(`schedule \d+, seed \d+, profile \w+, after.*`).FindString(string(output))
	t.Logf("found in %v: %s", time.Since(began).Round(time.Second), line)
}

// read reads what is said before a patch, a word, a colon and a value each line, and which files it changes.
func read(t *testing.T, patch string) (p plant) {
	t.Helper()
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		line := lines.Text()
		if file, ok := strings.CutPrefix(line, "diff --git a/"); ok {
			p.files = append(p.files, strings.Fields(file)[0])
		}
		if key, value, ok := strings.Cut(line, ": "); ok && len(p.files) == 0 {
			values[key] = value
		}
	}
	p.setup, p.profile, p.seed = values["setup"], values["profile"], values["seed"]
	if p.violation, err = regexp.Compile(values["violation"]); err != nil || values["violation"] == "" || p.setup == "" || len(p.files) == 0 {
		t.Fatalf("%s lacks a setup, a violation or a patch (%v)", patch, err)
	}
	return p
}

// overlay makes the patch in a copy of the files that it changes, and returns a build overlay of the copy (go help build).
func (p plant) overlay(t *testing.T, patch string) (list string) {
	t.Helper()
	root, dir, replace := root(t), t.TempDir(), map[string]string{}
	for _, file := range p.files {
		copyFile(t, filepath.Join(root, file), filepath.Join(dir, file))
	}
	absolute, err := filepath.Abs(patch)
	if err != nil {
		t.Fatal(err)
	}
	tool(t, dir, "git", "apply", absolute)
	for _, file := range p.files {
		replace[filepath.Join(root, file)] = ""
		if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
			replace[filepath.Join(root, file)] = filepath.Join(dir, file)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}

func root(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// copyFile copies a file that need not be there: the patch may make it.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func tool(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, output)
	}
}
