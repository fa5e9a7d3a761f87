// Package plants puts defects into a copy of the code, so that a search for defects can show that it finds what it
// is there for.
//
// A plant is a file NAME.patch. Before the patch stand lines of a word, a colon and a value, which say how the search
// finds the defect; lines without a colon say what the defect is. Nothing is changed in the tree: the patch is made in
// a copy of the files, which a build overlay (go help build, -overlay) lays over the code. A patch that no longer
// applies fails the test: make it anew.
package plants
