package outcome

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Class says what to do about a failure.
type Class string

// The classes of failures.
const (
	Defect  Class = "DEFECT"  // the change, or the tree, is wrong
	Flaky   Class = "FLAKY"   // the test failed, and passed when it ran once more, alone
	Infra   Class = "INFRA"   // what the tests need could not be fetched; who fetches says so by this word and a colon
	Timeout Class = "TIMEOUT" // something did not end
)

// Failure is a top-level test that failed, a package that failed outside its tests, or a step without tests.
type Failure struct {
	Package string `json:",omitempty"`
	Test    string `json:",omitempty"` // the first part of the test that failed; empty for a package as a whole
	More    int    `json:",omitempty"` // how many other parts of the same top-level test failed
	Class   Class
	Error   string `json:",omitempty"` // the first error, with file and line where the test gives them
	Seed    string `json:",omitempty"`
	Again   string `json:",omitempty"` // the command that repeats it
	Tail    string `json:",omitempty"` // the end of what it printed
}

// Report is the outcome of a run of tests.
type Report struct {
	Passed, Failed, Skipped int
	Failures                []Failure
}

// Write writes the report to a file.
func (r Report) Write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the report: %w", err)
	}
	return os.WriteFile(path, text, 0o600)
}

// Read reads the report that Write has written; its error is fs.ErrNotExist where there is none.
func Read(path string) (r Report, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s is no report: %w", path, err)
	}
	return r, nil
}

// FirstError returns the first line of a test's output that tells of a failure which is never one of chance, else the
// first that names a Go file and a line, else the first that is not empty. A test may have logged its progress before:
// logged reports whether a line of a file prints to a log. Where all have, the last one is the nearest to the failure.
func FirstError(output string, logged func(file string, line int) bool) string {
	if line := firstLine(output, regexp.MustCompile(grave)); line != "" {
		return line
	}
	if line := located(output, logged); line != "" {
		return line
	}
	return firstLine(output, regexp.MustCompile(`.`))
}

// grave are the words of a failure that is never one of chance.
const grave = `DATA RACE|race detected|panic: |\bVIOLATION\b|fatal error: `

// IsGrave reports whether a test's output tells of a failure that is never one of chance: a race, a panic, or a
// violation of an invariant.
func IsGrave(output string) bool { return regexp.MustCompile(grave).MatchString(output) }

// IsInfra reports whether a text tells that something could not be fetched, and does not only quote that. The exit
// status would tell it better, but go run, go test and make have one for everything.
func IsInfra(text string) bool { return regexp.MustCompile(`(^|\s)INFRA: `).MatchString(text) }

// firstLine returns the first line that has a match, but for those that go test prints of itself.
func firstLine(output string, match *regexp.Regexp) string {
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=== ") && match.MatchString(line) {
			return line
		}
	}
	return ""
}

func located(output string, logged func(file string, line int) bool) (last string) {
	heading := regexp.MustCompile(`:\d+: : # `) // golangci-lint's of what a compiler says
	text := regexp.MustCompile(`(?m)^\s*((\S+\.go):(\d+):.*|panic: .*)$`)
	for _, m := range text.FindAllStringSubmatch(output, -1) {
		if heading.MatchString(m[1]) {
			continue
		}
		last = strings.TrimSpace(m[1])
		if line, err := strconv.Atoi(m[3]); err != nil || !logged(m[2], line) {
			return last
		}
	}
	return last
}

// StepError is the FirstError of a whole step, whose first line is a command: where no line names a file, or the step
// ended since something could not be fetched, it is the last one that is not only told on by those who ran what failed.
func StepError(log string) string {
	last := lastSaid(log)
	if IsInfra(last) {
		return last
	}
	if line := located(log, func(string, int) bool { return false }); line != "" {
		return line
	}
	return last
}

// StepClass is the class of a step that failed without a report of its tests.
func StepClass(log string) Class {
	if IsInfra(lastSaid(log)) {
		return Infra
	}
	return Defect
}

func lastSaid(log string) (last string) {
	echoed := regexp.MustCompile(`^(exit status \d+|make(\[\d+\])?: \*\*\* .*|try: .* failed, try \d of \d|)$`)
	for line := range strings.Lines(log) {
		if line = strings.TrimSpace(line); !echoed.MatchString(line) {
			last = line
		}
	}
	return last
}

// Tail returns the last lines of a text.
func Tail(text string, lines int) string {
	all := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}
