package uses

import (
	"errors"

	"google.golang.org/protobuf/types/known/structpb"
)

// The gRPC service.
const (
	Service = "stowage.v1.Uses"
	Method  = "GetUse"
)

// Query asks whether the node uses a volume.
type Query struct {
	Volume string // its handle
}

// Use is the answer. It holds for an instant between question and answer.
type Use struct {
	InUse bool   // the volume is staged or published, or may be
	Says  string // where, for people
}

// Encode converts the query to a message.
func (q Query) Encode() *structpb.Struct {
	return message(map[string]*structpb.Value{"volume": structpb.NewStringValue(q.Volume)})
}

// DecodeQuery reads a query from a message.
func DecodeQuery(m *structpb.Struct) Query {
	return Query{Volume: m.GetFields()["volume"].GetStringValue()}
}

// Encode converts the answer to a message.
func (u Use) Encode() *structpb.Struct {
	return message(map[string]*structpb.Value{
		"inUse": structpb.NewBoolValue(u.InUse), "says": structpb.NewStringValue(u.Says),
	})
}

// DecodeUse reads an answer from a message. It fails if the message does not say whether the volume is in use.
func DecodeUse(m *structpb.Struct) (Use, error) {
	used, ok := m.GetFields()["inUse"].GetKind().(*structpb.Value_BoolValue)
	if !ok {
		return Use{}, errors.New("the answer does not say whether the volume is in use")
	}
	return Use{InUse: used.BoolValue, Says: m.GetFields()["says"].GetStringValue()}, nil
}

func message(fields map[string]*structpb.Value) *structpb.Struct {
	return &structpb.Struct{Fields: fields}
}
