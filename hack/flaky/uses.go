package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// declaration is a test of a package, or another declaration in its test files.
type declaration struct {
	file    string
	at      lines
	names   []string
	uses    map[string]bool // every name in it
	touched bool
}

// testsIn returns the tests of a folder that the changed lines of its files affect, including tests that use a changed
// helper indirectly. A change outside of all declarations, for example to the imports, affects all tests of its file.
func testsIn(folder string, parts map[string][]lines) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot look for tests: %w", err)
	}
	var all []*declaration
	for _, file := range files {
		declared, err := declarations(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read the tests beside a changed one: %w", err)
		}
		touch(declared, parts[file])
		all = append(all, declared...)
	}
	spread(all)
	for _, d := range all {
		if d.touched && d.isTest() {
			names = append(names, d.names[0])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func declarations(file string) (all []*declaration, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, node := range tree.Decls {
		d := &declaration{file: file, uses: map[string]bool{}}
		begin := node.Pos()
		switch node := node.(type) {
		case *ast.FuncDecl:
			d.names = []string{node.Name.Name}
			if node.Recv != nil {
				d.names[0] = "." + d.names[0]
			}
			if node.Doc != nil {
				begin = node.Doc.Pos()
			}
		case *ast.GenDecl:
			if node.Tok == token.IMPORT {
				continue
			}
			if node.Doc != nil {
				begin = node.Doc.Pos()
			}
			d.names = declaredBy(node)
		}
		ast.Inspect(node, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				d.uses[id.Name] = true
			}
			return true
		})
		d.at = lines{set.Position(begin).Line, set.Position(node.End()).Line}
		all = append(all, d)
	}
	return all, nil
}

// declaredBy returns the names of constants, variables and types.
func declaredBy(node *ast.GenDecl) (names []string) {
	for _, spec := range node.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names = append(names, spec.Name.Name)
		case *ast.ValueSpec:
			for _, id := range spec.Names {
				names = append(names, id.Name)
			}
		}
	}
	return names
}

// touch marks the declarations that contain changed lines of a file.
func touch(declared []*declaration, parts []lines) {
	for _, part := range parts {
		inside := false
		for _, d := range declared {
			if part.first <= d.at.last && d.at.first <= part.last {
				d.touched, inside = true, true
			}
		}
		for _, d := range declared {
			d.touched = d.touched || !inside && d.isTest()
		}
	}
}

// spread marks all declarations that use a marked one, directly or indirectly. It compares names, not their meaning: it
// may run too many tests, but never too few. Code that runs before all tests affects all of them.
func spread(all []*declaration) {
	names := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, d := range all {
			for used := range d.uses {
				d.touched = d.touched || names[used]
			}
			for _, name := range d.names {
				name = strings.TrimPrefix(name, ".")
				grown = grown || d.touched && !names[name]
				names[name] = names[name] || d.touched
			}
		}
	}
	for _, d := range all {
		d.touched = d.touched || names["TestMain"] || names["init"]
	}
}

func (d *declaration) isTest() bool {
	return len(d.names) == 1 && d.names[0] != "TestMain" &&
		regexp.MustCompile(`^(Test|Fuzz|Example)`).MatchString(d.names[0])
}
