package local

import (
	"encoding/base64"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// tokenVersion begins every token, so that a later version can tell its own.
const tokenVersion = "1:"

// tokenAfter makes the token of an enumeration that goes on after the handle.
func tokenAfter(handle string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenVersion + handle))
}

// parseToken returns the handle after which the enumeration goes on; empty for the start. The handle need not
// be there any more. Kinds: Busy for what tokenAfter did not make, or not for such handles.
func parseToken(prefix, token string) (string, error) {
	if token == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(token)
	handle, ok := strings.CutPrefix(string(text), tokenVersion)
	if err != nil || !ok || !isHandle(prefix, handle) {
		return "", backends.Errorf(backends.Busy, "the token %q is not one of this enumeration: start again without a token", token)
	}
	return handle, nil
}

// cut returns at most limit entries, all for 0, and the token for the rest.
func cut[T any](entries []entry[T], limit int) (page []entry[T], next string) {
	if limit <= 0 || len(entries) <= limit {
		return entries, ""
	}
	return entries[:limit], tokenAfter(entries[limit-1].handle)
}
