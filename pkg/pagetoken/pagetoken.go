package pagetoken

import (
	"strings"

	"github.com/stowage-csi/stowage/pkg/base64url"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// version begins every token, so that a later version can recognize its own.
const version = "1:"

// After returns the token of an enumeration that continues after the handle.
func After(handle string) string { return base64url.Encode([]byte(version + handle)) }

// Parse returns the handle after which the enumeration continues; empty for the start. The function ours reports
// whether a handle belongs to the enumeration. Kinds: Busy for what After did not make, or not for such handles.
func Parse(token string, ours func(handle string) bool) (handle string, err error) {
	if token == "" {
		return "", nil
	}
	text, err := base64url.Decode(token)
	handle, ok := strings.CutPrefix(string(text), version)
	if err != nil || !ok || !ours(handle) {
		return "", failure.Errorf(failure.Busy, "the token %.64q is not one of this enumeration: start again without a token",
			token)
	}
	return handle, nil
}

// Cut returns at most limit things, all for 0, and the token for the rest.
func Cut[T any](things []T, limit int, handle func(T) string) (page []T, next string) {
	if limit <= 0 || len(things) <= limit {
		return things, ""
	}
	return things[:limit], After(handle(things[limit-1]))
}
