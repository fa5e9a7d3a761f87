// Package canary proves that no secret appears in a log or an error: it runs the real binary at the highest verbosity,
// in each log format, with secrets in all possible fields.
package canary
