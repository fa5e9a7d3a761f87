// Command houserules checks rules of this project that no existing linter knows: every package has a doc.go; functions
// are small overall (median, 95th percentile) and individually; files are short; and no decision depends on the text of
// an error.
//
//	houserules pkg cmd
//	houserules -tests pkg cmd tests
//
// Tests are exempt from all but the first: a table of cases is long, and a test may check a message. Tests have their
// own rule: no deadline that a busy machine can miss.
package main
