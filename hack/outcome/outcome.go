package outcome

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Class is the class of a failure, which determines the reaction.
type Class string

// The classes of failures.
const (
	Defect  Class = "DEFECT"  // the change, or the tree, is wrong
	Flaky   Class = "FLAKY"   // the test failed, and passed when it was rerun alone
	Infra   Class = "INFRA"   // a download failed; the downloading code reports this with the word and a colon
	Timeout Class = "TIMEOUT" // it did not end
)

// Failure is a top-level test that failed, a package that failed outside its tests, or a step without tests.
type Failure struct {
	Package string `json:",omitempty"`
	Test    string `json:",omitempty"` // the first failed part of the test; empty for a whole package
	More    int    `json:",omitempty"` // the number of other failed parts of the same top-level test
	Class   Class
	Error   string `json:",omitempty"` // the first error, with file and line where the test gives them
	Seed    string `json:",omitempty"`
	Again   string `json:",omitempty"` // the command that repeats it
	Tail    string `json:",omitempty"` // the end of its output
	Machine string `json:",omitempty"` // the state of the machine when it failed
}

// Report is the result of a test run.
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

// Read reads a report of Write. The error is fs.ErrNotExist if there is none.
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

// FirstError returns the first line of a test's output with a failure that is never random, or else the first line with
// a Go file and a line number, or else the first line that is not empty. A test may have logged its progress before:
// logged reports whether a line of a file prints to a log. If all do, the last one is used, as the closest to the
// failure.
func FirstError(output string, logged func(file string, line int) bool) string {
	if line := firstLine(output, regexp.MustCompile(grave)); line != "" {
		return line
	}
	if line := located(output, logged); line != "" {
		return line
	}
	return firstLine(output, regexp.MustCompile(`.`))
}

// grave matches failures that are never random.
const grave = `DATA RACE|race detected|panic: |\bVIOLATION\b|fatal error: `

// IsGrave reports whether a test's output contains a failure that is never random: a race, a panic, or a violation of
// an invariant.
func IsGrave(output string) bool { return regexp.MustCompile(grave).MatchString(output) }

// IsInfra reports whether a text itself reports a failed download, as opposed to quoting such a report. The exit status
// would be clearer, but go run, go test and make use one status for every failure.
func IsInfra(text string) bool { return regexp.MustCompile(`(^|\s)INFRA: `).MatchString(text) }

// firstLine returns the first line with a match, except lines that go test itself prints.
func firstLine(output string, match *regexp.Regexp) string {
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=== ") && match.MatchString(line) {
			return line
		}
	}
	return ""
}

func located(output string, logged func(file string, line int) bool) (last string) {
	heading := regexp.MustCompile(`:\d+: : # `) // golangci-lint's heading of a compiler's output
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

// StepError returns the FirstError of a whole step, whose first line is a command. If no line names a file, or the step
// ended because of a failed download, it returns the last line that is more than a report by a caller of the failed
// command.
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

// StepClass returns the class of a failed step without a report of its tests.
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
