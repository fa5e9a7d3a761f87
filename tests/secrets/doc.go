// Package secrets plants a secret in every field of a CSI message that can contain one, so that tests can check that it
// does not appear elsewhere.
package secrets
