package backends

import "time"

// MachineState is the state of a machine; empty if it is unknown.
type MachineState string

// Only Stopped and Terminated say that nothing runs on the machine, so that it cannot write.
const (
	MachineRunning    MachineState = "running"  // or it is being started
	MachineStopping   MachineState = "stopping" // or it is being terminated
	MachineStopped    MachineState = "stopped"
	MachineTerminated MachineState = "terminated"
)

// MachineQuery names a machine.
type MachineQuery struct {
	Node string // the node's ID, as in AttachRequest
	// the machine's ID in the form that its cloud has for orchestrators, as in NodeInfo; empty if it is unknown
	ProviderID string
}

// Machine is the state of a machine as its provider reports it.
type Machine struct {
	State MachineState
	Began time.Time // when it was last started; stopping and starting it makes this later
	Says  string    // the evidence, in words for people
}
