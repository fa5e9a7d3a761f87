// Package secret decides what must not appear in a log, an error, or any other place that outlives a request. It knows
// which names suggest a secret. Only package doctor/bundle has another list, for the text of logs and messages.
package secret
