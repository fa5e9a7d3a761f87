package machines

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

// The gRPC service.
const (
	Service = "stowage.v1.Machines"
	Method  = "GetMachine"
)

// State is what a machine does. An empty one is not known.
type State string

// Only Stopped and Terminated say that nothing runs on the machine.
const (
	Running    State = "running"  // or it is being started
	Stopping   State = "stopping" // or it is being terminated
	Stopped    State = "stopped"
	Terminated State = "terminated"
	Missing    State = "missing" // the provider has no such machine, or has forgotten it
)

// Off reports whether nothing runs on a machine in this state, so that it cannot write.
func (s State) Off() bool { return s == Stopped || s == Terminated }

// Query asks for the machine of a node.
type Query struct {
	Node       string // the node's ID, as it has registered it for the driver
	ProviderID string // what the orchestrator has for the same machine; empty where it has nothing
}

// Machine is what is true of a machine.
type Machine struct {
	State State
	Began time.Time // when it was started last; the zero time where that is not known
	Says  string    // the evidence, in words for people
}

// Encode makes a message of the query.
func (q Query) Encode() *structpb.Struct {
	return message(map[string]string{"node": q.Node, "providerID": q.ProviderID})
}

// DecodeQuery reads a message.
func DecodeQuery(m *structpb.Struct) Query {
	return Query{Node: text(m, "node"), ProviderID: text(m, "providerID")}
}

// Encode makes a message of what is true of the machine.
func (m Machine) Encode() *structpb.Struct {
	fields := map[string]string{"state": string(m.State), "says": m.Says}
	if !m.Began.IsZero() {
		fields["began"] = m.Began.UTC().Format(time.RFC3339Nano)
	}
	return message(fields)
}

// DecodeMachine reads a message. A state that is not known here is an unknown one; an instant that cannot be read is an
// error.
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
