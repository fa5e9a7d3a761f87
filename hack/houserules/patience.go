package main

import (
	"go/ast"
	"go/token"
	"maps"
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

// patience reports the deadlines of tests, and of their helpers, that a busy machine can miss. Deadlines of simulated
// time expire only when all goroutines are blocked.
func (h *house) patience(file *ast.File, test bool) {
	if imports(file, "testing/synctest") {
		return
	}
	explained := map[int]bool{} // the lines that a comment explains
	for _, group := range file.Comments {
		if strings.Contains(group.Text(), stimulus) {
			last := h.fset.Position(group.End()).Line
			explained[last], explained[last+1] = true, true
		}
	}
	named := durations(file)
	ast.Inspect(file, func(n ast.Node) bool {
		d := deadlineOf(n)
		if clause, waits := n.(*ast.CommClause); d == nil || waits && !test && len(clause.Body) == 0 {
			return true // A helper that waits without further action pauses between two checks.
		}
		at := h.fset.Position(n.Pos())
		if wait, ok := durationIn(named, d); ok && wait < minPatience && !explained[at.Line] {
			h.report(at, "the test waits for %v: wait for an event, or two minutes; if it must pass, say why in a comment "+
				"that begins with %s", wait, stimulus)
		}
		return true
	})
}

func imports(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
}

// deadlineOf returns the time that a node waits: in context.WithTimeout, context.WithTimeoutCause,
// context.WithDeadline, a loop that begins with time.Now().Add, and a select's <-time.After. On its own, <-time.After
// is a pause between two checks.
func deadlineOf(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.CommClause:
		return waitOf(n)
	case *ast.ForStmt:
		if begin, ok := n.Init.(*ast.AssignStmt); ok {
			for _, value := range begin.Rhs {
				if d := fromNow(value); d != nil {
					return d
				}
			}
		}
	case *ast.CallExpr:
		switch {
		case len(n.Args) < 2:
		case isCall(n, "context", "WithTimeout"), isCall(n, "context", "WithTimeoutCause"):
			return n.Args[1]
		case isCall(n, "context", "WithDeadline"):
			return fromNow(n.Args[1])
		}
	}
	return nil
}

// waitOf returns the d of a select's <-time.After(d).
func waitOf(clause *ast.CommClause) ast.Expr {
	statement, ok := clause.Comm.(*ast.ExprStmt)
	if !ok {
		return nil
	}
	receive, ok := statement.X.(*ast.UnaryExpr)
	if !ok {
		return nil
	}
	if call, ok := receive.X.(*ast.CallExpr); ok && isCall(call, "time", "After") {
		return call.Args[0]
	}
	return nil
}

// fromNow returns the d of time.Now().Add(d).
func fromNow(e ast.Expr) ast.Expr {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil
	}
	add, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || add.Sel.Name != "Add" {
		return nil
	}
	if now, ok := add.X.(*ast.CallExpr); ok && isCall(now, "time", "Now") {
		return call.Args[0]
	}
	return nil
}

func isCall(call *ast.CallExpr, pkg, name string) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && isName(s, pkg, name)
}

func isName(s *ast.SelectorExpr, pkg, name string) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && s.Sel.Name == name
}

// durations returns the values of the file's constants and variables that are durations. A name with several meanings
// has no value.
func durations(file *ast.File) map[string]time.Duration {
	named, twice := map[string]time.Duration{}, map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok { // a parameter
			for _, name := range field.Names {
				twice[name.Name] = true
			}
		}
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != len(spec.Values) {
			return true
		}
		for i, name := range spec.Names {
			if d, ok := duration(spec.Values[i]); ok {
				twice[name.Name] = twice[name.Name] || named[name.Name] > 0
				named[name.Name] = d
			}
		}
		return true
	})
	maps.DeleteFunc(named, func(name string, _ time.Duration) bool { return twice[name] })
	return named
}

// durationIn returns the duration of an expression or a name, and whether it has one.
func durationIn(named map[string]time.Duration, e ast.Expr) (time.Duration, bool) {
	if id, ok := e.(*ast.Ident); ok {
		d, known := named[id.Name]
		return d, known
	}
	return duration(e)
}

// duration returns the value of an expression of numbers and constants of package time, and whether it is such an
// expression.
func duration(e ast.Expr) (time.Duration, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return duration(e.X)
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return time.Duration(n), err == nil
	case *ast.SelectorExpr:
		for name, unit := range map[string]time.Duration{
			"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second,
			"Minute": time.Minute, "Hour": time.Hour,
		} {
			if isName(e, "time", name) {
				return unit, true
			}
		}
	case *ast.BinaryExpr:
		a, constant := duration(e.X)
		b, too := duration(e.Y)
		return a * b, constant && too && e.Op == token.MUL
	}
	return 0, false
}
