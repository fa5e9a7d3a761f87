package main

import (
	"go/ast"
	"go/token"
)

// deadlineOf returns the time that a node waits: in a call that sets a deadline, a field Timeout, a loop that begins
// with time.Now().Add or goes on while time.Since is less, a channel of time.After that a select receives from or that
// gets a name, and an upper bound on time.Since. On its own, <-time.After is a pause between two checks.
func deadlineOf(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.CommClause:
		return waitOf(n)
	case *ast.AssignStmt:
		return first(n.Rhs, afterOf)
	case *ast.ValueSpec:
		return first(n.Values, afterOf)
	case *ast.KeyValueExpr:
		return timeoutOf(n)
	case *ast.ForStmt:
		if begin, ok := n.Init.(*ast.AssignStmt); ok {
			if d := first(begin.Rhs, fromNow); d != nil {
				return d
			}
		}
		return whileOf(n.Cond)
	case *ast.BinaryExpr:
		if (n.Op == token.GTR || n.Op == token.GEQ) && isSince(n.X) {
			return n.Y
		}
	case *ast.CallExpr:
		return limitOf(n)
	}
	return nil
}

// first returns the first result of a function that is not nil.
func first(expressions []ast.Expr, of func(ast.Expr) ast.Expr) ast.Expr {
	for _, e := range expressions {
		if d := of(e); d != nil {
			return d
		}
	}
	return nil
}

// timeoutOf returns the d of a field Timeout: d, as an http.Client and a net.Dialer have it.
func timeoutOf(field *ast.KeyValueExpr) ast.Expr {
	if name, ok := field.Key.(*ast.Ident); ok && name.Name == "Timeout" {
		return field.Value
	}
	return nil
}

// limitOf returns the d of a call that ends something, or begins something, after d.
func limitOf(call *ast.CallExpr) ast.Expr {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	switch function.Sel.Name {
	case "SetDeadline", "SetReadDeadline", "SetWriteDeadline": // of a connection
		return fromNow(call.Args[0])
	}
	switch {
	case isCall(call, "time", "NewTimer"), isCall(call, "time", "AfterFunc"):
		return call.Args[0]
	case len(call.Args) < 2:
	case isCall(call, "context", "WithTimeout"), isCall(call, "context", "WithTimeoutCause"):
		return call.Args[1]
	case isCall(call, "context", "WithDeadline"), isCall(call, "context", "WithDeadlineCause"):
		return fromNow(call.Args[1])
	}
	return nil
}

// waitOf returns the d of a select's <-time.After(d), whether or not it uses the instant that it receives.
func waitOf(clause *ast.CommClause) ast.Expr {
	var received ast.Expr
	switch statement := clause.Comm.(type) {
	case *ast.ExprStmt:
		received = statement.X
	case *ast.AssignStmt:
		received = statement.Rhs[0]
	}
	if receive, ok := received.(*ast.UnaryExpr); ok {
		return afterOf(receive.X)
	}
	return nil
}

// afterOf returns the d of time.After(d).
func afterOf(e ast.Expr) ast.Expr {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 && isCall(call, "time", "After") {
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

// whileOf returns the d of a condition time.Since(t) < d, or of one that is part of a condition.
func whileOf(condition ast.Expr) ast.Expr {
	c, ok := condition.(*ast.BinaryExpr)
	switch {
	case !ok:
		return nil
	case (c.Op == token.LSS || c.Op == token.LEQ) && isSince(c.X):
		return c.Y
	}
	return first([]ast.Expr{c.X, c.Y}, whileOf)
}

func isSince(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && isCall(call, "time", "Since")
}

func isCall(call *ast.CallExpr, pkg, name string) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && isName(s, pkg, name)
}

func isName(s *ast.SelectorExpr, pkg, name string) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && s.Sel.Name == name
}
