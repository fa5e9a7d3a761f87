// Package patient calls the backend of a cloud as an orchestrator does. Each call has a deadline and is repeated until
// its outcome is known. Names are looked up before a creation, one creation at a time. After a creation without an
// answer, an existing resource of that name is the requested one.
//
// Even if a cloud's requests meet faults, a backend has to keep the promises of the conformance suite, only later.
package patient
