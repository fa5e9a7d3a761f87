package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The limits, in lines. A function's size is that of its body without the braces.
const (
	medianLimit   = 12
	p95Limit      = 50
	functionLimit = 80
	fileLimit     = 400
)

func main() {
	tests := flag.Bool("tests", false, "check the rules of tests only")
	flag.Parse()
	if flag.NArg() < 1 {
		fmt.Fprintln(os.Stderr, "usage: houserules [-tests] FOLDER...")
		os.Exit(2)
	}
	broken, err := run(os.Stdout, *tests, flag.Args())
	if err != nil {
		fmt.Fprintf(os.Stderr, "houserules: %v\n", err)
		os.Exit(2)
	}
	if broken > 0 {
		fmt.Fprintf(os.Stderr, "houserules: %d rules broken\n", broken)
		os.Exit(1)
	}
}

// run prints the violations below the folders, and returns their number.
func run(out io.Writer, tests bool, folders []string) (int, error) {
	h := &house{fset: token.NewFileSet(), documented: map[string]bool{}, constants: map[string]values{}}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			return h.file(path, tests)
		})
		if err != nil {
			return 0, err
		}
	}
	for _, file := range h.timed { // now that all constants are known
		h.patience(file)
	}
	if !tests {
		h.packages()
		h.sizes(out)
	}
	slices.Sort(h.findings)
	for _, finding := range h.findings {
		fmt.Fprintln(out, finding)
	}
	return len(h.findings), nil
}

// house holds the state of the check.
type house struct {
	fset       *token.FileSet
	documented map[string]bool   // by folder of a package: whether it has a doc.go
	functions  []int             // sizes in lines
	timed      []timed           // files whose deadlines are checked
	constants  map[string]values // by package: the durations among them
	findings   []string
}

func (h *house) report(at token.Position, format string, args ...any) {
	h.findings = append(h.findings, fmt.Sprintf("%s:%d: ", at.Filename, at.Line)+fmt.Sprintf(format, args...))
}

func (h *house) file(path string, tests bool) error {
	file, err := parser.ParseFile(h.fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if tests {
		h.note(path, file)
	}
	folder := filepath.Dir(path)
	h.documented[folder] = h.documented[folder] || filepath.Base(path) == "doc.go"
	if tests || isTest(path, file) || ast.IsGenerated(file) {
		return nil
	}
	if lines := h.fset.File(file.Pos()).LineCount(); lines > fileLimit {
		h.report(token.Position{Filename: path, Line: lines}, "the file has %d lines, more than %d: split it by ideas", lines,
			fileLimit)
	}
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
			h.function(function)
		}
	}
	ast.Inspect(file, h.errorText)
	return nil
}

// note keeps a file for the check of deadlines, and its constants.
func (h *house) note(path string, file *ast.File) {
	pkg := filepath.Join(filepath.Dir(path), file.Name.Name)
	h.declare(pkg, file)
	if test := isTest(path, file); test || helps(path) {
		h.timed = append(h.timed, timed{file, pkg, test})
	}
}

// helps reports whether the file serves only tests, as all files below a folder tests do.
func helps(path string) bool {
	return slices.Contains(strings.Split(filepath.ToSlash(filepath.Dir(path)), "/"), "tests")
}

// isTest reports whether the file is a test, or a part of a suite that tests call.
func isTest(path string, file *ast.File) bool {
	return strings.HasSuffix(path, "_test.go") ||
		slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` }) ||
		strings.HasSuffix(file.Name.Name, "test")
}

func (h *house) function(f *ast.FuncDecl) {
	begin, end := h.fset.Position(f.Body.Lbrace), h.fset.Position(f.Body.Rbrace)
	size := max(1, end.Line-begin.Line-1)
	h.functions = append(h.functions, size)
	if size > functionLimit {
		h.report(begin, "%s has %d lines, more than %d", f.Name.Name, size, functionLimit)
	}
}

func (h *house) packages() {
	for folder, ok := range h.documented {
		if !ok {
			h.report(token.Position{Filename: folder, Line: 1}, "the package has no doc.go that says why it exists")
		}
	}
}

// sizes prints the lengths of the functions, and checks their distribution.
func (h *house) sizes(out io.Writer) {
	if len(h.functions) == 0 {
		h.findings = append(h.findings, "there are no functions here: wrong folders?")
		return
	}
	slices.Sort(h.functions)
	last := len(h.functions) - 1
	median, p95 := h.functions[last/2], h.functions[last*95/100]
	fmt.Fprintf(out, "%d functions: median %d lines, 95th percentile %d, longest %d\n",
		len(h.functions), median, p95, h.functions[last])
	if median > medianLimit {
		h.findings = append(h.findings, fmt.Sprintf("the median function has %d lines, more than %d", median, medianLimit))
	}
	if p95 > p95Limit {
		h.findings = append(h.findings, fmt.Sprintf("5 %% of the functions have %d lines and more, more than %d", p95,
			p95Limit))
	}
}
