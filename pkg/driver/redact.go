package driver

import (
	"log/slog"

	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stowage-csi/stowage/pkg/secret"
)

// redacted renders a CSI message for the log without its secrets, and only if the line is shown.
type redacted struct{ message any }

// LogValue implements slog.LogValuer.
func (r redacted) LogValue() slog.Value {
	message, ok := r.message.(proto.Message)
	if !ok {
		return slog.StringValue("")
	}
	return slog.StringValue(redact(message))
}

// String keeps a redacted message redacted wherever else it is printed.
func (r redacted) String() string { return r.LogValue().String() }

// redact removes the fields that the specification marks as secret, and other known places of secrets: service account
// tokens in a volume context (CVE-2024-3744), credentials among mount flags or in another value of a user, and values
// of any map whose key suggests a secret.
func redact(message proto.Message) string {
	message = proto.Clone(message)
	hideMessage(message.ProtoReflect())
	return protosanitizer.StripSecrets(message).String()
}

func hideMessage(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			hideMap(value.Map())
		case field.Kind() == protoreflect.MessageKind && field.IsList():
			for i := range value.List().Len() {
				hideMessage(value.List().Get(i).Message())
			}
		case field.Kind() == protoreflect.MessageKind:
			hideMessage(value.Message())
		case field.IsList() && field.Name() == "mount_flags":
			hideFlags(value.List())
		case field.Name() == "fs_type":
			m.Set(field, protoreflect.ValueOfString(secret.Option(value.String())))
		}
		return true
	})
}

func hideMap(m protoreflect.Map) {
	m.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		text, ok := value.Interface().(string)
		switch {
		case !ok:
		case secret.Named(key.String()):
			m.Set(key, protoreflect.ValueOfString(secret.Hidden))
		default:
			m.Set(key, protoreflect.ValueOfString(secret.Option(text)))
		}
		return true
	})
}

func hideFlags(list protoreflect.List) {
	for i := range list.Len() {
		list.Set(i, protoreflect.ValueOfString(secret.Option(list.Get(i).String())))
	}
}
