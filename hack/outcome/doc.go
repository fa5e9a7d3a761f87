// Package outcome is the form in which hack/testsum reports a run of tests to hack/ci.
package outcome
