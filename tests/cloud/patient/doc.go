// Package patient calls the backend of a cloud as an orchestrator does: each call has a deadline and is repeated until
// its outcome is known, names are found before they are made, one at a time, and what is there after a creation without
// an answer is what was asked for.
//
// Over a cloud whose requests meet faults, a backend has to keep the promises of the conformance suite all the same,
// only later.
package patient
