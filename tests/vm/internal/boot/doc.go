// Package boot makes all that a guest is booted from, and boots it in the best way that works on this machine.
package boot
