package failure

import (
	"errors"
	"fmt"
	"strings"
)

// Kind classifies a failure; pkg/driver has a gRPC code for each Kind, by the call that fails.
type Kind int

// The Kinds, with their meaning for the caller.
const (
	// Unknown is an unclassified failure. It implies that nothing was created.
	Unknown Kind = iota
	// Invalid input can never succeed as it is.
	Invalid
	// NotFound means that the thing does not exist.
	NotFound
	// Exists means that the thing already exists, or exists in another form.
	Exists
	// OutOfRange is a size that is not possible.
	OutOfRange
	// Exhausted storage, quota or attach slots may be free again later.
	Exhausted
	// InUse means that the thing cannot be changed because something uses it, or that it is not in the state that the
	// request needs. The request is valid, and becomes possible when the thing changes.
	InUse
	// Busy is an operation under way, or one whose outcome is not known yet: the caller retries.
	Busy
	// Unsupported is something that this backend cannot do at all.
	Unsupported
	// Denied is missing permission.
	Denied
	// Unavailable storage may answer later; the operation may or may not have happened.
	Unavailable
	// Unusable means that the thing exists, or may exist, but cannot be used now: its disk is away, its record cannot be
	// read, or its pool is no longer configured. Nothing was changed. It keeps its name and its handle.
	Unusable
)

// String returns the Kind in words.
func (k Kind) String() string {
	switch k {
	case Unknown:
		return "unknown"
	case Invalid:
		return "invalid"
	case NotFound:
		return "not found"
	case Exists:
		return "exists"
	case OutOfRange:
		return "out of range"
	case Exhausted:
		return "exhausted"
	case InUse:
		return "in use"
	case Busy:
		return "busy"
	case Unsupported:
		return "unsupported"
	case Denied:
		return "denied"
	case Unavailable:
		return "unavailable"
	case Unusable:
		return "unusable now"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Error is a failure of a known Kind. Its text is for people: it says what was wrong, with which value, and what would
// be right.
type Error struct {
	Kind   Kind
	Op     string // the operation, such as "create"; may be empty
	Volume string // the name or handle of its object; may be empty
	Err    error  // the cause; never nil
}

// Error renders the failure as one sentence.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Volume != "" {
		if e.Op != "" {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%q", e.Volume)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of the Kind with a formatted cause; %w wraps as in fmt.Errorf.
func Errorf(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// KindOf returns the Kind of the outermost Error in err's chain. An error of the operating system without an Error
// around it is Exhausted or Unavailable, if that is true of it wherever it occurs; all others are Unknown.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return byDefault(err)
}

// Is reports whether err is a failure of the Kind.
func Is(err error, kind Kind) bool {
	return err != nil && KindOf(err) == kind
}
