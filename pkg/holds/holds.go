package holds

import (
	"errors"

	"google.golang.org/protobuf/types/known/structpb"
)

// The gRPC service.
const (
	Service = "stowage.v1.Holds"
	Method  = "GetHold"
)

// Query asks whether a volume may be detached from a node.
type Query struct {
	Volume string // its handle
	Node   string // the node's ID, as registered for the driver; empty for all nodes
}

// Hold is the answer.
type Hold struct {
	Held bool   // the volume must stay attached
	Says string // the reason, for people
}

// Encode converts the query to a message.
func (q Query) Encode() *structpb.Struct {
	return message(map[string]*structpb.Value{
		"volume": structpb.NewStringValue(q.Volume), "node": structpb.NewStringValue(q.Node),
	})
}

// DecodeQuery reads a query from a message.
func DecodeQuery(m *structpb.Struct) Query {
	return Query{Volume: m.GetFields()["volume"].GetStringValue(), Node: m.GetFields()["node"].GetStringValue()}
}

// Encode converts the answer to a message.
func (h Hold) Encode() *structpb.Struct {
	return message(map[string]*structpb.Value{
		"held": structpb.NewBoolValue(h.Held), "says": structpb.NewStringValue(h.Says),
	})
}

// DecodeHold reads an answer from a message. It fails if the message does not say whether the volume is held.
func DecodeHold(m *structpb.Struct) (Hold, error) {
	held, ok := m.GetFields()["held"].GetKind().(*structpb.Value_BoolValue)
	if !ok {
		return Hold{}, errors.New("the answer does not say whether the volume is held")
	}
	return Hold{Held: held.BoolValue, Says: m.GetFields()["says"].GetStringValue()}, nil
}

func message(fields map[string]*structpb.Value) *structpb.Struct {
	return &structpb.Struct{Fields: fields}
}
