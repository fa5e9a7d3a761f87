// Package failure classifies failures. A Kind says what a failure means to the caller, and pkg/driver alone turns a
// Kind into a gRPC code.
//
// The package imports nothing of Stowage, so that every package can fail with a Kind. Backends use the same Kinds
// through pkg/backends, which is all that the author of a backend needs to read.
package failure
