// Package params turns the string parameters of a StorageClass, VolumeAttributesClass or VolumeSnapshotClass into typed
// structs, and refuses everything that it does not know.
//
// Kubernetes does not check these maps, so a typo in a class could silently give wrong volumes. A struct's tags define
// once what is allowed. Decoding, the error messages, the fingerprint of a volume and docs/parameters.md are all
// derived from them:
//
//	type Parameters struct {
//		Pool   string      `param:"pool" default:"image" doc:"Pool to take the volume from."`
//		FSType string      `param:"fsType" enum:"ext4|xfs" alias:"fstype"`
//		Stripe params.Size `param:"stripe" min:"4Ki" max:"1Mi"`
//		IOPS   *int64      `param:"iops" min:"100" doc:"Operations per second."`
//		_      string      `param:"legacyHint"`
//	}
//
// # Tags
//
//   - param is the key, case-sensitive. A field without it, or with "-", is not a parameter.
//   - default is the value if the key is not given. Without it, the value is the type's zero value, which need not be
//     in enum or between min and max. Pointers have no default.
//   - enum lists the allowed values, separated by "|"; for a list, those of its entries. Not for bool.
//   - min and max bound a number, a Size or a Duration, both included.
//   - alias lists older spellings of the key, separated by "|".
//   - doc is a sentence for the documentation.
//
// # Types
//
//   - string, and types derived from it: any text without control characters, unchanged.
//   - bool: only "true" or "false". Other spellings ("yes", "1", "True") differ from tool to tool, and strconv's "t" or
//     "F" look like typos.
//   - int and int64: decimal digits with an optional "-". Leading zeros are refused, because half of the readers would
//     read them as octal.
//   - Size: bytes, see ParseSize.
//   - Duration: hours, minutes and seconds, such as "24h" or "1h30m".
//   - []string: entries separated by commas, with spaces around an entry dropped and empty entries refused. The empty
//     text is the empty list, which is nil.
//   - a pointer to one of these: nil when the key is not given. It is the form of a mutable parameter, for which
//     "unchanged" differs from every value.
//   - map[string]string: a family of keys, for a key that ends with "*". It holds the values of all keys with that
//     beginning that no other parameter has, by their ends. They are strings as above.
//   - a field named _: the key is accepted with any value, and ignored.
//   - an embedded struct: its fields are parameters.
//
// A target with a method Validate() error is validated after decoding, for rules that no single tag can express.
package params
