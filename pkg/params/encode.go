package params

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"reflect"
	"slices"
)

// fingerprintBytes is how many bytes of the hash a fingerprint keeps: enough to prevent accidental collisions, and half
// a record's line.
const fingerprintBytes = 16

// Encode returns the parameters of target, a struct or a pointer to one, in canonical spelling. It omits a parameter
// whose value is that of an absent key. Decoding the result into a target of the same type gives the same values again,
// for every target that Decode can return. A nil target has no values.
func Encode(target any) map[string]string {
	return new(Schemas).encode(target)
}

// Encode is the function Encode for types of targets that are used repeatedly.
func (c *Schemas) Encode(target any) map[string]string { return c.encode(target) }

func (c *Schemas) encode(targets ...any) map[string]string {
	var structs []reflect.Value
	for _, target := range targets {
		if value := reflect.ValueOf(target); !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
			continue
		}
		value, err := structOf(target)
		if err != nil {
			panic("params: " + err.Error())
		}
		structs = append(structs, value)
	}
	values := map[string]string{}
	for _, p := range c.of(structs).parameters {
		if p.ignored() {
			continue
		}
		maps.Copy(values, p.texts(p.field(structs)))
	}
	return values
}

// Fingerprint returns 32 hexadecimal digits that identify the joint result of Encode for the targets. For the same
// values it is the same in every release, however they were spelled. A new parameter with a default does not change it;
// a changed default or key does. Nil targets have no values.
func Fingerprint(targets ...any) string { return new(Schemas).Fingerprint(targets...) }

// Fingerprint is the function Fingerprint for types of targets that are used repeatedly.
func (c *Schemas) Fingerprint(targets ...any) string {
	values := c.encode(targets...)
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		for _, text := range []string{key, values[key]} {
			// The length before each text distinguishes maps that would otherwise run together. Write never fails (hash.Hash).
			_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
			_, _ = hash.Write([]byte(text))
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:fingerprintBytes])
}
