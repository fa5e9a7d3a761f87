// Package outcome defines the format in which hack/testsum reports a test run to hack/ci, with the state of the machine
// beside each failure, and that of the lists of tests that may be skipped or left out.
package outcome
