package backends

import "github.com/stowage-csi/stowage/pkg/failure"

// Kind classifies a failure. pkg/driver maps it, together with the RPC that failed, to a gRPC code.
type Kind = failure.Kind

// Error is a failure of a known Kind.
type Error = failure.Error

// The Kinds are described in pkg/failure.
const (
	Unknown     = failure.Unknown
	Invalid     = failure.Invalid
	NotFound    = failure.NotFound
	Exists      = failure.Exists
	OutOfRange  = failure.OutOfRange
	Exhausted   = failure.Exhausted
	InUse       = failure.InUse
	Busy        = failure.Busy
	Unsupported = failure.Unsupported
	Denied      = failure.Denied
	Unavailable = failure.Unavailable
	Unusable    = failure.Unusable
)

// Errorf returns an Error of the Kind with a formatted cause; %w wraps as in fmt.Errorf.
func Errorf(kind Kind, format string, args ...any) error {
	return failure.Errorf(kind, format, args...)
}

// KindOf returns the Kind of the outermost Error in err's chain. An error of the operating system without an Error
// around it is Exhausted or Unavailable, if that is true of it wherever it occurs; all others are Unknown.
func KindOf(err error) Kind { return failure.KindOf(err) }

// Is reports whether err is a failure of the Kind.
func Is(err error, kind Kind) bool { return failure.Is(err, kind) }
