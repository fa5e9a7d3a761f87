package main

import (
	"go/ast"
	"go/token"
	"maps"
	"strconv"
	"time"
)

// values are durations by name.
type values map[string]time.Duration

// of returns the duration of an expression of numbers, constants of package time and names, and whether it is such an
// expression.
func (v values) of(e ast.Expr) (time.Duration, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return v.of(e.X)
	case *ast.Ident:
		d, known := v[e.Name]
		return d, known
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return time.Duration(n), err == nil
	case *ast.SelectorExpr:
		return unit(e)
	case *ast.BinaryExpr:
		a, known := v.of(e.X)
		b, too := v.of(e.Y)
		if e.Op == token.ADD {
			return a + b, known && too
		}
		return a * b, known && too && e.Op == token.MUL
	}
	return 0, false
}

// unit returns the value of a constant of package time.
func unit(e *ast.SelectorExpr) (time.Duration, bool) {
	for name, d := range map[string]time.Duration{
		"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second,
		"Minute": time.Minute, "Hour": time.Hour,
	} {
		if isName(e, "time", name) {
			return d, true
		}
	}
	return 0, false
}

// declare notes the constants of a package that are durations: all files of the package can use them.
func (h *house) declare(pkg string, file *ast.File) {
	if h.constants[pkg] == nil {
		h.constants[pkg] = values{}
	}
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			if spec, ok := spec.(*ast.ValueSpec); ok {
				h.constants[pkg].declare(spec)
			}
		}
	}
}

func (v values) declare(spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		if d, ok := v.of(valueAt(spec.Values, i, len(spec.Names))); ok {
			v[name.Name] = d
		}
	}
}

// valueAt returns the value of one of so many names; nil if a name has none of its own.
func valueAt(list []ast.Expr, i, names int) ast.Expr {
	if len(list) != names {
		return nil
	}
	return list[i]
}

// meanings are what the names in a file stand for.
type meanings struct {
	values
	seen, several map[string]bool // names with a meaning, and with several
}

// durations returns the durations by which a file calls them: its own constants and variables, and the constants of its
// package. A name with several meanings, or that is assigned again, has no value.
func durations(file *ast.File, constants values) values {
	m := &meanings{values{}, map[string]bool{}, map[string]bool{}}
	maps.Copy(m.values, constants)
	ast.Inspect(file, m.look)
	maps.DeleteFunc(m.values, func(name string, _ time.Duration) bool { return m.several[name] })
	return m.values
}

// look notes the names that a node gives a meaning. The fields of structs and the methods of interfaces are no such
// names.
func (m *meanings) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.StructType, *ast.InterfaceType:
		return false
	case *ast.Field: // a parameter
		for _, name := range n.Names {
			m.several[name.Name] = true
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			m.mean(name, valueAt(n.Values, i, len(n.Names)))
		}
	case *ast.AssignStmt:
		for i, name := range n.Lhs {
			value := valueAt(n.Rhs, i, len(n.Lhs))
			if n.Tok != token.DEFINE {
				value = nil
			}
			m.mean(name, value)
		}
	case *ast.RangeStmt:
		m.mean(n.Key, nil)
		m.mean(n.Value, nil)
	}
	return true
}

// mean notes what a name stands for; nil for something other than a duration.
func (m *meanings) mean(name, value ast.Expr) {
	id, ok := name.(*ast.Ident)
	if !ok {
		return
	}
	d, known := m.of(value)
	m.several[id.Name] = m.several[id.Name] || m.seen[id.Name] || !known
	m.seen[id.Name] = true
	if known {
		m.values[id.Name] = d
	}
}
