// Command houserules checks those rules of the house that no ready-made linter knows: every package has
// a doc.go; functions are small as a whole (median, 95th percentile) and singly; files stay short; and
// nothing is decided by matching text in an error.
//
//	houserules pkg cmd
//	houserules -tests pkg cmd tests
//
// Tests are exempt from all but the first: a table of cases is long, and a test may look at a message. They have a rule
// of their own: no deadline that a busy machine can miss.
package main
