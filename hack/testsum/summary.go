package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/hack/outcome"
)

// summary collects the results of a run and prints them as they come.
type summary struct {
	out     io.Writer
	allowed []outcome.Allowance
	verbose bool
	begun   time.Time

	running  map[test]*strings.Builder // unfinished tests, with their output
	current  map[string]*counts        // of the unfinished packages
	total    counts
	skips    []string                    // every skip, as a line to print
	refusals []string                    // the skips that are not allowed
	failed   []*failure                  // in the order of their failures
	broken   int                         // packages that failed as a whole: build, panic, TestMain
	builds   map[string]*strings.Builder // the compiler's output, by package
	passed   map[test]bool
	loose    map[string]string     // by package, output that may belong to another test than the one it is assigned to
	specs    map[test]*counts      // of the Ginkgo suites that tests ran
	emptied  func(pkg string) bool // reports whether the command may select no test of a package
	cut      bool                  // the run was interrupted
	repeat   func(*failure) string // returns the command that repeats a failure
	sources  sources
}

// goTest replaces the package in a failure of go test itself.
const goTest = "go test"

// test identifies a test; a package as a whole has no name.
type test struct{ pkg, name string }

func newSummary(out io.Writer, allowed []outcome.Allowance) *summary {
	return &summary{
		out: out, allowed: allowed, begun: time.Now(),
		running: map[test]*strings.Builder{}, current: map[string]*counts{}, builds: map[string]*strings.Builder{},
		passed: map[test]bool{}, loose: map[string]string{}, specs: map[test]*counts{},
		emptied: func(string) bool { return true },
		repeat:  func(*failure) string { return "" },
		sources: sources{dirs: map[string]string{}},
	}
}

func (s *summary) add(e event) {
	id := test{e.Package, e.Test}
	switch e.Action {
	case "start", "run":
		s.start(id)
	case "output":
		s.output(id, e.Output)
	case "build-output":
		s.built(e.ImportPath).WriteString(e.Output)
	case "stray":
		fmt.Fprint(s.out, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(id, e.Action)
		}
	}
}

func (s *summary) start(id test) *strings.Builder {
	if s.running[id] == nil {
		s.running[id] = &strings.Builder{}
	}
	if s.current[id.pkg] == nil {
		s.current[id.pkg] = &counts{}
	}
	return s.running[id]
}

func (s *summary) output(id test, text string) {
	s.start(id).WriteString(text)
	if s.verbose && !strings.HasPrefix(text, "=== ") {
		fmt.Fprint(s.out, text)
	}
	if c, ok := specs(text); ok {
		s.current[id.pkg].add(c)
		if s.specs[id] == nil {
			s.specs[id] = &counts{}
		}
		s.specs[id].add(c)
		if c.skipped > 0 {
			s.skip(id, s.specs[id].skipped)
		}
	}
}

func (s *summary) endTest(id test, action string) {
	text := s.start(id)
	defer delete(s.running, id)
	c := s.current[id.pkg]
	if action != "fail" && outcome.IsGrave(text.String()) { // go test assigns it to the test of the last event
		s.loose[id.pkg] += text.String()
	}
	switch action {
	case "pass":
		c.passed++
		s.passed[id] = true
	case "skip":
		c.skipped++
		s.skip(id, 0)
	case "fail":
		c.failed++
		s.dump(id, text)
	}
}

// dump prints a failed test's output, unless that was printed as it came, and records the failure.
func (s *summary) dump(id test, text *strings.Builder) *failure {
	if !s.verbose {
		fmt.Fprintf(s.out, "--- %s %s\n%s", id.pkg, id.name, text)
	}
	return s.fail(id, text.String())
}

// skip records a skipped test, or the given number of skipped specs of one.
func (s *summary) skip(id test, specs int) {
	what := id.pkg + " " + id.name
	if specs > 0 {
		what = fmt.Sprintf("%s (%d specs)", what, specs)
	}
	for _, a := range s.allowed {
		if a.Covers(id.pkg, id.name, specs) {
			s.skips = append(s.skips, fmt.Sprintf("allowed  %s: %s", what, a.Reason))
			return
		}
	}
	s.refusals = append(s.refusals, what)
	line := "REFUSED  " + what
	if text := s.running[id]; specs == 0 && text != nil {
		line += "\n" + text.String()
	}
	s.skips = append(s.skips, line)
}

func (s *summary) endPackage(e event) {
	s.start(test{pkg: e.Package})
	c := *s.current[e.Package]
	verdict := map[string]string{"pass": "ok", "fail": "FAIL", "skip": "-"}[e.Action]
	said := s.loose[e.Package] + s.start(test{pkg: e.Package}).String()
	left := s.unfinished(e.Package, said)
	c.failed += left
	switch {
	case e.Action == "fail" && (c.failed == 0 || isOutside(said) && s.allByChance(e.Package)):
		s.breakPackage(e.Package, s.built(e.FailedBuild).String()+said)
	// A test program prints that.
	case e.Action == "pass" && c == (counts{}) && !s.emptied(e.Package) && strings.Contains(said, "ok  \t"):
		verdict = "FAIL"
		s.breakPackage(e.Package, "it passed, and none of its tests ran\n"+said)
	}
	s.total.add(c)
	s.forget(e.Package)
	if e.Action == "skip" {
		return // it has no tests
	}
	fmt.Fprintf(s.out, "%-4s %6.1fs %5d passed %3d failed %3d skipped  %s\n",
		verdict, e.Elapsed, c.passed, c.failed, c.skipped, e.Package)
}

// breakPackage records that a package failed as a whole.
func (s *summary) breakPackage(pkg, text string) {
	s.broken++
	fmt.Fprint(s.out, text)
	s.fail(test{pkg: pkg}, text)
}

// unfinished prints the output of the tests that were running when a package ended, as after a panic, a timeout or a
// signal, and counts them. The package's own output may contain the cause.
func (s *summary) unfinished(pkg, said string) int {
	n := 0
	for _, id := range s.ids() {
		if id.pkg == pkg && id.name != "" {
			n++
			text := s.running[id]
			fmt.Fprintf(text, "it had not ended when its package did\n%s", said)
			s.dump(id, text).died = true
		}
	}
	return n
}

// isOutside reports, based on the package's own output, whether something besides its tests failed while some of them
// did: it contains a failure that is never random, or the package did not reach its verdict, or printed more than go
// does after that. Rerunning a test does not check this.
func isOutside(said string) bool {
	if outcome.IsGrave(said) {
		return true // While a test fails too, go does not name a race outside of tests after the verdict.
	}
	_, after, ended := strings.Cut("\n"+said, "\nFAIL\n")
	for line := range strings.Lines(after) {
		if !regexp.MustCompile(`^(FAIL\t.*|FAIL|coverage: .*|exit status 1)?$`).MatchString(strings.TrimSpace(line)) {
			return true
		}
	}
	return !ended
}

// allByChance reports whether each failure of the package may be random.
func (s *summary) allByChance(pkg string) bool {
	return !slices.ContainsFunc(s.failed, func(f *failure) bool { return f.id.pkg == pkg && !f.isChance() })
}

func (s *summary) built(path string) *strings.Builder {
	if s.builds[path] == nil {
		s.builds[path] = &strings.Builder{}
	}
	return s.builds[path]
}

func (s *summary) forget(pkg string) {
	delete(s.current, pkg)
	delete(s.loose, pkg)
	maps.DeleteFunc(s.running, func(id test, _ *strings.Builder) bool { return id.pkg == pkg })
}

// ids returns the running tests, in order.
func (s *summary) ids() []test {
	return slices.SortedFunc(maps.Keys(s.running), func(a, b test) int {
		return strings.Compare(a.pkg+" "+a.name, b.pkg+" "+b.name)
	})
}

// progress prints the running tests of each package that have no running subtest.
func (s *summary) progress() {
	fmt.Fprintf(s.out, "...  %6.1fs running: %s\n", time.Since(s.begun).Seconds(), strings.Join(leaves(s.ids()), ", "))
}

// leaves returns the names of the tests that have no part among the others.
func leaves(ids []test) (names []string) {
	for i, id := range ids {
		parent := i+1 < len(ids) && ids[i+1].pkg == id.pkg &&
			(id.name == "" || strings.HasPrefix(ids[i+1].name, id.name+"/"))
		if !parent {
			names = append(names, strings.TrimSpace(id.pkg+" "+id.name))
		}
	}
	return names
}

// ended records how go test ended. A failure without an event, such as a pattern that matches nothing, fails the run.
func (s *summary) ended(err error) {
	if err != nil && len(s.failed) == 0 && s.broken == 0 {
		s.broken++
		s.fail(test{pkg: goTest}, err.Error()+"\n")
	}
}

// left returns the names and the output of a package's tests that were running when the run was interrupted.
func (s *summary) left(pkg test) string {
	own := slices.DeleteFunc(s.ids(), func(other test) bool { return other.pkg != pkg.pkg })
	text := fmt.Sprintf("it did not end, with %s\n", strings.Join(leaves(own), ", "))
	for _, id := range own {
		if said := s.running[id].String(); said != "" {
			text += fmt.Sprintf("--- %s %s\n%s", id.pkg, id.name, said)
		}
	}
	return text
}

// finish prints the skips, the failures again, for readers of only the end, and the totals. It returns an error if the
// run failed.
func (s *summary) finish() error {
	for _, id := range s.ids() {
		if id.name == "" {
			s.total.add(*s.current[id.pkg])
			s.broken++ // its end was not reported: go test was interrupted
			fmt.Fprintf(s.out, "FAIL %s did not end\n", id.pkg)
			s.fail(id, s.left(id)).cut = true
		}
	}
	if len(s.skips) > 0 {
		fmt.Fprintf(s.out, "skipped:\n  %s\n", strings.Join(s.skips, "\n  "))
	}
	for _, f := range s.failures() {
		fmt.Fprintf(s.out, "%s %s %s: %s\n", f.Class, f.Package, f.Test, f.Error)
		if f.Tail != "" {
			fmt.Fprintf(s.out, "%s\n", f.Tail)
		}
		if f.Again != "" {
			fmt.Fprintf(s.out, "again: %s\n", f.Again)
		}
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.total.passed, s.total.failed, s.total.skipped)
	return s.verdict()
}

func (s *summary) verdict() error {
	switch {
	case s.total.failed > 0:
		return fmt.Errorf("%d tests failed", s.total.failed)
	case s.broken > 0:
		return fmt.Errorf("%d packages failed outside their tests", s.broken)
	case len(s.refusals) > 0:
		return fmt.Errorf("%d skips are not on the list of those allowed", len(s.refusals))
	case s.total.passed == 0:
		return errors.New("no test passed")
	}
	return nil
}
