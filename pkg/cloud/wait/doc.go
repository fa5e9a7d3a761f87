// Package wait waits for things in a cloud to reach a state.
//
// Clouds do not announce that they are done: callers must poll. If each waiting request polls in its own loop, the
// account is throttled. A fixed interval is too slow for the usual case or too fast for the bad one. A Waiter polls on
// behalf of all callers, with one request for all of their things, and learns how long the cloud usually takes. It
// looks first when a thing is likely to be done, and ever more rarely if it is overdue.
//
// Callers set the deadlines. A look that gets no answer decides nothing: the next one may succeed.
package wait
