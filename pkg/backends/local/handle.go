package local

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// The prefixes distinguish handles for readers, and the tokens of one enumeration from those of another.
const (
	volumePrefix   = "lv-"
	snapshotPrefix = "ls-"
	groupPrefix    = "lg-"
)

// handleOf returns the handle for the name. The same name always has the same handle, even across restarts, so that
// reserving the handle reserves the name. The handle is valid in a file name, whatever the name is.
func handleOf(prefix, name string) string { return prefix + digest(prefix, name) }

// memberHandle returns the handle of a group's n-th snapshot. No name of a snapshot results in this handle.
func memberHandle(group string, n int) string {
	return snapshotPrefix + digest("member", group+"/"+strconv.Itoa(n))
}

func digest(domain, text string) string {
	sum := sha256.Sum256([]byte(domain + "\x00" + text))
	return hex.EncodeToString(sum[:16])
}

// isHandle reports whether the text has the form of a handle with the prefix.
func isHandle(prefix, text string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || len(rest) != 32 {
		return false
	}
	return strings.Trim(rest, "0123456789abcdef") == ""
}
