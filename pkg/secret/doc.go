// Package secret decides what must not be shown: in a log, an error, or anywhere else that outlives a
// request. It is the one place that knows which names speak of a secret.
package secret
