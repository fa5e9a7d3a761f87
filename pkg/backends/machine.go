package backends

import "time"

// MachineState is what a machine does. An empty one is not known.
type MachineState string

// Only Stopped and Terminated say that nothing runs on the machine: it cannot write.
const (
	MachineRunning    MachineState = "running"  // or it is being started
	MachineStopping   MachineState = "stopping" // or it is being terminated
	MachineStopped    MachineState = "stopped"
	MachineTerminated MachineState = "terminated"
)

// MachineQuery names a machine.
type MachineQuery struct {
	Node string // the node's ID, as in AttachRequest
	// the machine's ID in the form that its cloud has for orchestrators, as in NodeInfo; empty where it is not known
	ProviderID string
}

// Machine is what a provider says of a machine.
type Machine struct {
	State MachineState
	Began time.Time // when it was started last: one that was stopped and started again has a later one
	Says  string    // the evidence, in words for people
}
