package qemu

import (
	"os"

	"golang.org/x/sys/unix"
)

// Accel is what runs the guest's instructions.
type Accel string

// The ways to run a guest.
const (
	KVM Accel = "kvm" // the processor itself
	TCG Accel = "tcg" // a translator: everything works, several times slower
)

// Candidates are the ways worth trying on this machine, the best first. A /dev/kvm that is there need not work: the
// paravirtual flavour that some clouds give their guests boots none that need more than a plain processor, and
// nested virtualization can hang. So a guest that does not come up is tried again by the next way.
func Candidates() []Accel {
	if _, err := os.Stat("/sys/module/kvm_pvm"); err == nil {
		return []Accel{TCG}
	}
	if unix.Access("/dev/kvm", unix.R_OK|unix.W_OK) != nil {
		return []Accel{TCG}
	}
	return []Accel{KVM, TCG}
}

// arguments are QEMU's for the processor.
func (a Accel) arguments() []string {
	if a == KVM {
		return []string{"-accel", "kvm", "-cpu", "host", "-smp", "2"}
	}
	return []string{"-accel", "tcg,thread=single", "-cpu", "qemu64,+ssse3,+sse4.1,+sse4.2", "-smp", "1"}
}
