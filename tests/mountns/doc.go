// Package mountns runs a test binary in its own mount namespace, so that its mounts end with it, and changes to / or
// /etc never reach the machine.
package mountns
