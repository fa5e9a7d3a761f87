package absence

import "google.golang.org/protobuf/types/known/structpb"

// key is the field in the detail of a status.
const key = "stowage.dev/no-volume-of-this-name"

// Detail returns the status detail which says that the name is absent.
func Detail() *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewBoolValue(true)}}
}

// IsSaid reports whether the details of a status include Detail.
func IsSaid(details []any) bool {
	for _, one := range details {
		if detail, ok := one.(*structpb.Struct); ok && detail.GetFields()[key].GetBoolValue() {
			return true
		}
	}
	return false
}
