// Package token makes idempotency tokens: what lets a cloud recognise a request that is repeated because its answer was
// lost.
//
// A token follows from the name of what is to be made, so that it is the same after a restart. But clouds remember
// tokens longer than the things made with them: a disk that failed on its way, or was deleted since, answers for its
// token still. So the token of a name can be turned to its next one, once it is certain that what the present one made
// is gone. The turns are remembered in the process only: after a restart the walk begins again at the first token, and
// the dead things that it meets turn it as before.
package token
