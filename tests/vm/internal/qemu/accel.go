package qemu

import (
	"os"

	"golang.org/x/sys/unix"
)

// Accel is a way to execute the guest's instructions.
type Accel string

// The ways to run a guest.
const (
	KVM Accel = "kvm" // the processor itself
	TCG Accel = "tcg" // a translator: everything works, but several times slower
)

// Candidates returns the ways worth trying on this machine, the best first. An existing /dev/kvm may not work: the
// paravirtual variant that some clouds give their guests boots only guests that need a plain processor, and nested
// virtualization can hang. A guest that does not boot is therefore tried again with the next way.
func Candidates() []Accel {
	if _, err := os.Stat("/sys/module/kvm_pvm"); err == nil {
		return []Accel{TCG}
	}
	if unix.Access("/dev/kvm", unix.R_OK|unix.W_OK) != nil {
		return []Accel{TCG}
	}
	return []Accel{KVM, TCG}
}

// arguments returns QEMU's arguments for the processor.
func (a Accel) arguments() []string {
	if a == KVM {
		return []string{"-accel", "kvm", "-cpu", "host", "-smp", "2"}
	}
	return []string{"-accel", "tcg,thread=single", "-cpu", "qemu64,+ssse3,+sse4.1,+sse4.2", "-smp", "1"}
}
