package main

import (
	"go/ast"
	"go/token"
	"slices"
)

// errorText reports comparisons and searches in the text of an error: texts change, Kinds and sentinel
// errors do not.
func (h *house) errorText(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.CallExpr:
		if searches(n.Fun) && slices.ContainsFunc(n.Args, isErrorText) {
			h.textual(n)
		}
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && (isErrorText(n.X) || isErrorText(n.Y)) {
			h.textual(n)
		}
	case *ast.SwitchStmt:
		if n.Tag != nil && isErrorText(n.Tag) {
			h.textual(n)
		}
	}
	return true
}

func (h *house) textual(at ast.Node) {
	h.report(h.fset.Position(at.Pos()),
		"nothing is decided by matching text in an error: use errors.Is, errors.AsType or backends.Is")
}

// searches reports whether the function looks for something in a text.
func searches(function ast.Expr) bool {
	selector, ok := function.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	names := []string{
		"Contains", "ContainsAny", "ContainsFunc", "ContainsRune", "Count", "Cut", "CutPrefix", "CutSuffix", "EqualFold",
		"FindString", "FindStringSubmatch", "HasPrefix", "HasSuffix", "Index", "LastIndex", "MatchString",
	}
	return slices.Contains(names, selector.Sel.Name)
}

// isErrorText reports whether the expression is err.Error(), or a call such as strings.ToLower(err.Error()).
func isErrorText(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if ok && selector.Sel.Name == "Error" && len(call.Args) == 0 {
		return true
	}
	return slices.ContainsFunc(call.Args, isErrorText)
}
