package absence

import "google.golang.org/protobuf/types/known/structpb"

// key is the field of the detail.
const key = "stowage.dev/no-volume-of-this-name"

// Detail is the detail of a status that says so.
func Detail() *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewBoolValue(true)}}
}

// IsSaid reports whether the details of a status say so.
func IsSaid(details []any) bool {
	for _, one := range details {
		if detail, ok := one.(*structpb.Struct); ok && detail.GetFields()[key].GetBoolValue() {
			return true
		}
	}
	return false
}
