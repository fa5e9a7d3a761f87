// Package orchestrator acts as a container orchestrator does towards the driver's binary: it builds it from this
// tree, runs it, kills it, asks again when an answer is not final, and looks at what is left when all is over.
//
// The demo and the crash test stand on it. Unlike package inprocess it keeps the process boundary, because
// that is what they are about: what survives the driver is in the kernel and on the disk, and nowhere else.
package orchestrator
