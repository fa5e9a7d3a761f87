// Package outcome defines the format in which hack/testsum reports a test run to hack/ci.
package outcome
