package main

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// minPatience is the minimum time that a test must wait: a busy machine is no defect.
	minPatience = 10 * time.Second
	// stimulus begins the comment of a deadline that must expire: the awaited event never happens, on any machine.
	stimulus = "Stimulus:"
)

// timed is a file whose deadlines are checked.
type timed struct {
	*ast.File
	pkg  string // its folder and package
	test bool   // a test, or otherwise a helper of tests
}

// patience reports the deadlines of tests, and of their helpers, that a busy machine can miss.
func (h *house) patience(f timed) {
	explained := map[int]bool{} // the lines that a comment explains
	for _, group := range f.Comments {
		if strings.Contains(group.Text(), stimulus) {
			last := h.fset.Position(group.End()).Line
			explained[last], explained[last+1] = true, true
		}
	}
	named := durations(f.File, h.constants[f.pkg])
	check := func(n ast.Node) bool {
		d := deadlineOf(n)
		if d == nil || !f.test && pauses(n) {
			return true
		}
		at := h.fset.Position(n.Pos())
		if wait, ok := named.of(d); ok && wait < minPatience && !explained[at.Line] {
			h.report(at, "the test waits for %v: wait for an event, or two minutes; if it must pass, say why in a comment "+
				"that begins with %s", wait, stimulus)
		}
		return true
	}
	for _, declaration := range f.Decls {
		if !simulated(f.File, declaration) {
			ast.Inspect(declaration, check)
		}
	}
}

// simulated reports whether a declaration is for simulated time, in which deadlines expire only when all goroutines are
// blocked. In a file that uses it, that is everything but the tests that do not mention it.
func simulated(file *ast.File, declaration ast.Decl) bool {
	if !imports(file, "testing/synctest") {
		return false
	}
	function, ok := declaration.(*ast.FuncDecl)
	return !ok || function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Test") || mentions(function, "synctest")
}

func imports(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
}

func mentions(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// pauses reports whether a node is no deadline in a helper. A select that waits without further action pauses between
// two checks, and a comparison may ask for the age of something.
func pauses(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CommClause:
		return len(n.Body) == 0
	case *ast.BinaryExpr:
		return true
	}
	return false
}
