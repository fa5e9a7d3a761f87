// Package plants adds defects to a copy of the code, so that a search for defects can prove that it finds the kinds it
// is made for.
//
// A plant is a file NAME.patch. The lines before the patch consist of a word, a colon and a value, and control the
// search for the defect; lines without a colon describe the defect. The tree is not changed: the patch is applied to a
// copy of the files, which a build overlay (go help build, -overlay) substitutes for the code. A patch that no longer
// applies fails the test, and must be recreated.
package plants
