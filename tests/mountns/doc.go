// Package mountns runs a test binary in a mount namespace of its own, so that what it mounts is gone with
// it and what it is asked to do to / or /etc never reaches the machine.
package mountns
