package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	floor := flag.Float64("floor", 85, "least coverage in percent of statements")
	exclude := flag.String("exclude", "",
		"comma-separated ends of the import paths that count for nothing, such as test suites")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr,
			"usage: coverfloor [flags] PROFILE PACKAGE...\nA package that ends in /... stands for all below it, too.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Arg(0), flag.Args()[1:], strings.Split(*exclude, ","), *floor); err != nil {
		fmt.Fprintf(os.Stderr, "coverfloor: %v\n", err)
		os.Exit(1)
	}
}

func run(out io.Writer, profile string, floors, exclude []string, floor float64) error {
	f, err := os.Open(profile)
	if err != nil {
		return fmt.Errorf("cannot read the profile: %w", err)
	}
	defer func() { _ = f.Close() }() // It was only read.
	packages, err := parse(f, exclude)
	if err != nil {
		return fmt.Errorf("%s: %w", profile, err)
	}
	return report(out, packages, floors, floor)
}

// statements counts the statements of a package.
type statements struct{ all, covered int }

func (s statements) percent() float64 {
	if s.all == 0 {
		return 0
	}
	return 100 * float64(s.covered) / float64(s.all)
}

// parse sums up the profile by import path. A block is covered if any of the test binaries ran it.
func parse(profile io.Reader, exclude []string) (map[string]statements, error) {
	sizes, covered := map[string]int{}, map[string]bool{}
	lines := bufio.NewScanner(profile)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "mode: ") {
			continue
		}
		block, counts, _ := strings.Cut(lines.Text(), " ")
		first, second, _ := strings.Cut(counts, " ")
		size, err := strconv.Atoi(first)
		count, err2 := strconv.Atoi(second)
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("%q is not a line of a cover profile: %w", lines.Text(), err)
		}
		sizes[block] = size
		covered[block] = covered[block] || count > 0
	}
	packages := map[string]statements{}
	for block, size := range sizes {
		name := path.Dir(block)
		if excluded(name, exclude) {
			continue
		}
		s := packages[name]
		s.all += size
		if covered[block] {
			s.covered += size
		}
		packages[name] = s
	}
	return packages, lines.Err()
}

func excluded(name string, exclude []string) bool {
	return slices.ContainsFunc(exclude, func(end string) bool { return end != "" && strings.HasSuffix(name, "/"+end) })
}

// report prints a line for each package and for each floor, and lists the floors that are not reached.
func report(out io.Writer, packages map[string]statements, floors []string, floor float64) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	names := make([]string, 0, len(packages))
	for name := range packages {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintln(w, "coverage\tstatements\t  package")
	for _, name := range names {
		fmt.Fprintf(w, "%.1f %%\t%d\t  %s\n", packages[name].percent(), packages[name].all, name)
	}
	var low []string
	for _, pattern := range floors {
		s := total(packages, pattern)
		verdict := "ok"
		if s.percent() < floor {
			verdict = "LOW"
			low = append(low, pattern)
		}
		fmt.Fprintf(w, "%.1f %%\t%d\t  %s: %s, floor %.0f %%\n", s.percent(), s.all, pattern, verdict, floor)
	}
	if len(low) > 0 {
		return fmt.Errorf("below %.0f %%: %s", floor, strings.Join(low, ", "))
	}
	return nil
}

// total sums up the packages that match the pattern.
func total(packages map[string]statements, pattern string) statements {
	root, below := strings.CutSuffix(pattern, "/...")
	var sum statements
	for name, s := range packages {
		if strings.HasSuffix(name, "/"+root) || (below && strings.Contains(name, "/"+root+"/")) {
			sum.all += s.all
			sum.covered += s.covered
		}
	}
	return sum
}
