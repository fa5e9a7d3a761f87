// Package wait waits for things in a cloud to reach a state.
//
// Clouds do not tell when they are done; they have to be asked. A loop for each waiting request is what gets accounts
// throttled, and a fixed interval is either too slow for the usual case or too fast for the bad one. A Waiter looks on
// behalf of all who wait, with one request for all of their things, and learns how long the cloud usually takes: it
// looks first when things are likely to be done, and ever more rarely at what is overdue.
//
// Deadlines are the callers'. A look that fails for want of an answer is no verdict: the next one may succeed.
package wait
