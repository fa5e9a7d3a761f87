package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// programs returns the programs that the pages may call, so that a misspelt one is found. Those of this repository have
// the folder of their code, in which their flags are.
func programs() map[string]string {
	all := map[string]string{"stowage": "driver", "bin/stowage": "driver", "stowage-manager": "manager",
		"kubectl stowage": "kubectl-stowage"}
	for _, name := range []string{"aws", "buildah", "cat", "cp", "curl", "echo", "grep", "helm", "kubectl",
		"exportfs", //nolint:misspell // a program
		"kustomize", "ls", "make", "mkdir", "openssl", "sed", "tr", "umask", "velero", "xargs", "cd"} {
		all[name] = ""
	}
	return all
}

// TestShellInPages checks each shell block: bash can read it, the programs are known, and the flags of our own programs
// exist. TestCommandsInPages checks targets of make and paths.
func TestShellInPages(t *testing.T) {
	known, own := programs(), 0
	for _, b := range blocks(t, "sh") {
		script := exec.CommandContext(t.Context(), "bash", "-n", "-c", commandsOf(b.text))
		if out, err := script.CombinedOutput(); err != nil {
			t.Errorf("%s: bash cannot read the block that begins here: %v: %s", b.place(0), err, out)
			continue
		}
		for _, c := range calls(b.text) {
			folder, isKnown := known[c.program]
			if !isKnown {
				t.Errorf("%s: %q is no program that a page calls: correct it, or add it to the list of this test",
					b.place(c.line), c.program)
			}
			if folder == "" {
				continue
			}
			own++
			for _, flag := range c.flags {
				if !hasFlag(t, folder, flag) {
					t.Errorf("%s: %s has no flag --%s", b.place(c.line), c.program, flag)
				}
			}
		}
	}
	if own == 0 {
		t.Error("no page calls a program of this repository")
	}
}

// commandsOf returns the lines of a block that are commands: those after a prompt, if it has prompts, else all. Other
// lines are left empty, so that the numbers of the lines stay.
func commandsOf(text string) string {
	lines := strings.Split(text, "\n")
	prompted := slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "$ ") })
	for i, line := range lines {
		if command, isCommand := strings.CutPrefix(line, "$ "); prompted && isCommand {
			lines[i] = command
		} else if prompted {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// call is a program that a block calls.
type call struct {
	line    int // of the block, counted from 0
	program string
	flags   []string // the long ones
}

// calls returns the programs that a block calls. It knows as much of the shell as the pages use: pipes, lists,
// subshells, assignments, comments, continued lines and documents in place (<<).
func calls(text string) (found []call) {
	quoted, comment := regexp.MustCompile(`'[^']*'|"[^"]*"`), regexp.MustCompile(`(^|\s)#.*`)
	separator, document := regexp.MustCompile(`\|\|?|&&?|;|\(|\)`), regexp.MustCompile(`<<'?(\w+)'?`)
	end, continued, first := "", "", 0
	for number, line := range strings.Split(commandsOf(text), "\n") {
		if end != "" {
			if line == end {
				end = ""
			}
			continue
		}
		if mark := document.FindStringSubmatch(line); mark != nil {
			end = mark[1]
		}
		line = comment.ReplaceAllString(quoted.ReplaceAllString(line, "QUOTED"), "")
		if continued == "" {
			first = number
		}
		if rest, more := strings.CutSuffix(line, `\`); more {
			continued += rest
			continue
		}
		line, continued = continued+line, ""
		for _, command := range separator.Split(line, -1) {
			if c, isCall := callOf(strings.Fields(command)); isCall {
				c.line = first
				found = append(found, c)
			}
		}
	}
	return found
}

// callOf returns the call that the words of a command make. The plugin of kubectl is a program of its own.
func callOf(words []string) (call, bool) {
	assignment := regexp.MustCompile(`^\w+=`)
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return call{}, false
	}
	c := call{program: words[0]}
	if len(words) > 1 && words[0] == "kubectl" && words[1] == "stowage" {
		c.program = "kubectl stowage"
	}
	for _, word := range words[1:] {
		if flag, isFlag := strings.CutPrefix(word, "--"); isFlag && flag != "" {
			flag, _, _ = strings.Cut(flag, "=")
			c.flags = append(c.flags, flag)
		}
	}
	return c, true
}

// hasFlag reports whether the code of a program, or what binds flags for several, names the flag.
func hasFlag(t *testing.T, folder, flag string) bool {
	t.Helper()
	for _, pattern := range []string{"cmd/" + folder + "/*.go", "pkg/openfiles/*.go"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: found %q, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), `"`+flag+`"`) && !strings.HasSuffix(file, "_test.go") {
				return true
			}
		}
	}
	return false
}

// TestCalls checks the reading of a block.
func TestCalls(t *testing.T) {
	const text = `cluster=$(kubectl get ns) # then; | nothing
(cd deploy && kustomize edit \
  --set x) | xargs -r aws --tags "a | b; c"
kubectl apply -f - <<'YAML'
program: --none
YAML
kubectl stowage doctor --output=json
`
	want := []string{"0 kubectl []", "1 cd []", "1 kustomize [set]", "1 xargs [tags]", "3 kubectl []",
		"6 kubectl stowage [output]"}
	var got []string
	for _, c := range calls(text) {
		got = append(got, fmt.Sprint(c.line, " ", c.program, " ", c.flags))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}
