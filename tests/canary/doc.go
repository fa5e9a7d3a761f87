// Package canary proves that no secret shows up in a log or an error: it runs the real binary at the
// highest verbosity, in each log format, and puts a secret wherever one can be put.
package canary
