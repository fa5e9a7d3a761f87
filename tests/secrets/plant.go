package secrets

import (
	"strings"
	"unicode"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Canary is the secret.
const Canary = "c4n4ry-hunter2"

// Keys returns map keys under which orchestrators and people put secrets in practice.
func Keys() []string {
	return []string{
		"csi.storage.k8s.io/serviceAccount.tokens", "password", "node.session.auth.password", "accessKey",
		"CHAP-secret", "azure-sas", "credentials",
	}
}

// Joined returns values in which the secret follows another option, with each joiner that people and attackers use.
// Some use the joiner between name and value too.
func Joined() (all []string) {
	for _, joiner := range []string{",", ";", " ", "\n", "\r\n", "\t", "\x00", "\x1b[31m", "\x7f", "\u0085", "\u00a0",
		"\u2028", "\u2029", "\u3000", "\u200b", "\u202e", "\ufeff"} {
		all = append(all, "nfsvers=4"+joiner+"password="+Canary, "4"+joiner+"password:"+Canary)
		if strings.TrimFunc(joiner, unicode.IsPrint) != "" {
			all = append(all, "4"+joiner+"password"+joiner+Canary)
		}
	}
	return all
}

// Plant sets every field of a message, including nested messages, that may contain a secret: maps of text, and mount
// flags. It returns the number of these fields.
func Plant(message proto.Message) int { return plant(message.ProtoReflect(), 0) }

// maxDepth limits the recursion into messages that contain themselves.
const maxDepth = 4

func plant(m protoreflect.Message, depth int) int {
	planted := 0
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.IsMap() && field.MapValue().Kind() == protoreflect.StringKind:
			plantMap(m.Mutable(field).Map(), secret(field))
			planted++
		case field.IsList() && field.Name() == "mount_flags":
			m.Mutable(field).List().Append(protoreflect.ValueOfString("password=" + Canary))
			planted++
		case depth > maxDepth || field.Kind() != protoreflect.MessageKind || field.IsMap():
		case field.IsList():
			planted += plant(m.Mutable(field).List().AppendMutable().Message(), depth+1)
		default:
			planted += plant(m.Mutable(field).Message(), depth+1)
		}
	}
	return planted
}

// PlantMaps sets only the maps at the top level of a message. A valid request stays valid except for unknown
// parameters. With secretsOnly, it sets only the maps that the specification marks as secret, and the volume and
// publish contexts.
func PlantMaps(message proto.Message, secretsOnly bool) {
	m := message.ProtoReflect()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		text := field.IsMap() && field.MapValue().Kind() == protoreflect.StringKind
		if text && (secret(field) || !secretsOnly || field.Name() == "volume_context" || field.Name() == "publish_context") {
			plantMap(m.Mutable(field).Map(), secret(field))
		}
	}
}

func secret(field protoreflect.FieldDescriptor) bool {
	return proto.GetExtension(field.Options(), csi.E_CsiSecret) == true
}

func plantMap(values protoreflect.Map, secret bool) {
	for _, key := range Keys() {
		values.Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(Canary))
	}
	if secret {
		values.Set(protoreflect.ValueOfString("plain").MapKey(), protoreflect.ValueOfString(Canary))
	}
}
