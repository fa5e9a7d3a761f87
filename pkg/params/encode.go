package params

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"reflect"
	"slices"
)

// fingerprintBytes is how much of the hash a fingerprint keeps: no accident makes two of them equal, and
// it is half a record's line.
const fingerprintBytes = 16

// Encode returns the parameters of target, a struct or a pointer to one, whose values are not what an
// absent key stands for, each in one canonical spelling. Decoding the result into a target of the same type
// gives the same values again, for all that Decode can have made of it. A nil target has no values.
func Encode(target any) map[string]string {
	return new(Schemas).encode(target)
}

// Encode is the function Encode for targets of types that come again and again.
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
		if text, given := p.text(p.field(structs)); given {
			values[p.key] = text
		}
	}
	return values
}

// Fingerprint returns 32 hexadecimal digits that stand for what Encode returns for the targets together.
// It is the same in every release for the same values, however they were spelled, and adding a parameter
// with a default does not change it; changing a default or a key does. Nil targets count as without values.
func Fingerprint(targets ...any) string { return new(Schemas).Fingerprint(targets...) }

// Fingerprint is the function Fingerprint for targets of types that come again and again.
func (c *Schemas) Fingerprint(targets ...any) string {
	values := c.encode(targets...)
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		for _, text := range []string{key, values[key]} {
			// The length before each text keeps different maps from running together. Write never fails (hash.Hash).
			_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
			_, _ = hash.Write([]byte(text))
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:fingerprintBytes])
}
