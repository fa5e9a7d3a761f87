// Package tools imports the programs that are built from the modules of this folder's go.mod, so that go.mod and go.sum
// pin them and their dependencies.
package tools
