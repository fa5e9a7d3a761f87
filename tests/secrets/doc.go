// Package secrets plants a secret in every field of a CSI message that can carry one, so that tests can
// look for it where it must never be.
package secrets
