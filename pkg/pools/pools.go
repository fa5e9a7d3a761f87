package pools

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
)

// The gRPC service.
const (
	Service = "stowage.v1.Pools"
	Method  = "ListPools"
)

// Pool is a pool that volumes are taken from.
type Pool struct {
	Name, Type     string
	AvailableBytes int64
	LargestBytes   int64  // the largest possible volume; 0 if it is unknown
	Problem        string // why the pool cannot be used now; empty if it can
}

// Encode encodes pools as a message. Sizes are texts, because a number in a message has only 53 bits.
func Encode(pools []Pool) *structpb.Struct {
	list := &structpb.ListValue{}
	for _, p := range pools {
		fields := map[string]*structpb.Value{}
		for name, text := range map[string]string{"name": p.Name, "type": p.Type, "problem": p.Problem,
			"availableBytes": strconv.FormatInt(p.AvailableBytes, 10), "largestBytes": strconv.FormatInt(p.LargestBytes, 10),
		} {
			fields[name] = structpb.NewStringValue(text)
		}
		list.Values = append(list.Values, structpb.NewStructValue(&structpb.Struct{Fields: fields}))
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{"pools": structpb.NewListValue(list)}}
}

// Decode decodes a message. A pool without a name, or with an invalid size, is an error.
func Decode(m *structpb.Struct) ([]Pool, error) {
	var pools []Pool
	for i, value := range m.GetFields()["pools"].GetListValue().GetValues() {
		fields := value.GetStructValue().GetFields()
		text := func(name string) string { return fields[name].GetStringValue() }
		p := Pool{Name: text("name"), Type: text("type"), Problem: text("problem")}
		if p.Name == "" {
			return nil, fmt.Errorf("the driver's pool number %d has no name", i+1)
		}
		for name, size := range map[string]*int64{"availableBytes": &p.AvailableBytes, "largestBytes": &p.LargestBytes} {
			n, err := strconv.ParseInt(text(name), 10, 64)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("the driver says that %s of pool %q is %q, which is no size", name, p.Name, text(name))
			}
			*size = n
		}
		pools = append(pools, p)
	}
	return pools, nil
}
