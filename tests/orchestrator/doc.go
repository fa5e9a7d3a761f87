// Package orchestrator acts as a container orchestrator towards the driver's binary: it builds the binary from this
// tree, runs and kills it, retries after an answer that is not final, and checks for leftovers at the end.
//
// The demo and the crash test use it. Unlike package inprocess it keeps the process boundary, because these tests
// depend on it: only the state in the kernel and on the disk survives the driver.
package orchestrator
