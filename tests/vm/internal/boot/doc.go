// Package boot builds everything that a guest needs, and boots it with the best accelerator that works on this machine.
package boot
