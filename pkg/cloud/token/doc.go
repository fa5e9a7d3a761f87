// Package token makes idempotency tokens, by which a cloud recognises a request that is repeated because its answer was
// lost.
//
// A token is derived from the name of the thing to create, so it is the same after a restart. But a cloud remembers a
// token for longer than the thing created with it lives: a disk that failed during its creation, or was deleted since,
// is still returned for its token. A name can therefore be turned to its next token once the thing of its present token
// is certainly gone. Turns are kept in memory only: after a restart a name starts again at its first token, and moves
// on past the dead things as before.
package token
