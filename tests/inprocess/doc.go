// Package inprocess runs a whole driver inside a test: the real server on a real socket over a real
// backend, wired as cmd/driver wires it, with nothing but the process boundary left out.
package inprocess
