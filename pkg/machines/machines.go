package machines

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

// Names of the gRPC service and method.
const (
	Service = "stowage.v1.Machines"
	Method  = "GetMachine"
)

// State is the state of a machine. Empty means unknown.
type State string

// Only Stopped and Terminated prove that nothing runs on the machine.
const (
	Running    State = "running"  // or being started
	Stopping   State = "stopping" // or being terminated
	Stopped    State = "stopped"
	Terminated State = "terminated"
	Missing    State = "missing" // the provider has no such machine, or has forgotten it
)

// Off reports whether nothing runs on a machine in this state, so that it cannot write.
func (s State) Off() bool { return s == Stopped || s == Terminated }

// Query asks for the machine of a node.
type Query struct {
	Node       string // the node's registered ID for the driver
	ProviderID string // the orchestrator's ID of the same machine, if any
}

// Machine is the report about a machine.
type Machine struct {
	State State
	Began time.Time // time of the last start; zero if not known
	Says  string    // the evidence, for messages
}

// Encode converts the query to a message.
func (q Query) Encode() *structpb.Struct {
	return message(map[string]string{"node": q.Node, "providerID": q.ProviderID})
}

// DecodeQuery converts a message to a query.
func DecodeQuery(m *structpb.Struct) Query {
	return Query{Node: text(m, "node"), ProviderID: text(m, "providerID")}
}

// Encode converts the report to a message.
func (m Machine) Encode() *structpb.Struct {
	fields := map[string]string{"state": string(m.State), "says": m.Says}
	if !m.Began.IsZero() {
		fields["began"] = m.Began.UTC().Format(time.RFC3339Nano)
	}
	return message(fields)
}

// DecodeMachine converts a message to a report. It keeps a state that this package does not define, and fails if the
// time is not valid.
func DecodeMachine(m *structpb.Struct) (Machine, error) {
	machine := Machine{State: State(text(m, "state")), Says: text(m, "says")}
	began := text(m, "began")
	if began == "" {
		return machine, nil
	}
	at, err := time.Parse(time.RFC3339Nano, began)
	if err != nil {
		return Machine{}, fmt.Errorf("the driver says that a machine began at %q, which is no time: %w", began, err)
	}
	machine.Began = at
	return machine, nil
}

func message(fields map[string]string) *structpb.Struct {
	m := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for name, value := range fields {
		m.Fields[name] = structpb.NewStringValue(value)
	}
	return m
}

func text(m *structpb.Struct, name string) string { return m.GetFields()[name].GetStringValue() }
