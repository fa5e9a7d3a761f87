// Package inprocess runs a whole driver inside a test: the real server on a real socket over a real backend, wired as
// in cmd/driver. Only the process boundary is missing.
package inprocess
