package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// mostMap is the maximum size in bytes of a map's keys and values, and of a capability's mount flags: spec.md, Size
// Limits and MountVolume.
const mostMap = 4096

// sizes refuses requests with fields larger than the specification allows, before they are decoded. IDs and names have
// limits of their own, and secrets have those of a Kubernetes Secret.
func sizes() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if message, ok := request.(proto.Message); ok {
			if err := checkSizes(message.ProtoReflect()); err != nil {
				return nil, err
			}
		}
		return next(ctx, request)
	}
}

func checkSizes(m protoreflect.Message) (err error) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		size := 0
		isSecret, _ := proto.GetExtension(field.Options(), csi.E_CsiSecret).(bool)
		switch {
		case isSecret:
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				size += len(key.String()) + len(value.String())
				return true
			})
		case field.Kind() == protoreflect.MessageKind && field.IsList():
			for i := 0; err == nil && i < value.List().Len(); i++ {
				err = checkSizes(value.List().Get(i).Message())
			}
		case field.Kind() == protoreflect.MessageKind:
			err = checkSizes(value.Message())
		case field.IsList() && field.Name() == "mount_flags":
			for i := range value.List().Len() {
				size += len(value.List().Get(i).String())
			}
		}
		if err == nil && size > mostMap {
			err = backends.Errorf(backends.Invalid, "%s has %d bytes: the specification allows %d", field.Name(), size, mostMap)
		}
		return err == nil
	})
	return err
}
