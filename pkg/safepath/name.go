package safepath

import (
	"path"
	"strings"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// The kernel's limits in bytes (limits.h: NAME_MAX and PATH_MAX, the latter with its closing NUL).
const (
	maxName = 255
	maxPath = 4095
)

// Name checks that a string can be one element of a path: the name of something directly inside its directory. Kinds:
// Invalid.
func Name(s string) error {
	switch {
	case s == "":
		return failure.Errorf(failure.Invalid, "the empty string is not a file name")
	case s == "." || s == "..":
		return failure.Errorf(failure.Invalid, "%q is not a file name: it names a directory relative to others", s)
	case len(s) > maxName:
		return failure.Errorf(failure.Invalid, "file name %q... is %d bytes long: at most %d are allowed", s[:32], len(s),
			maxName)
	case strings.ContainsAny(s, "/\x00"):
		return failure.Errorf(failure.Invalid, "%q is not a file name: it contains a slash or a NUL byte", s)
	}
	return nil
}

// Absolute checks an external path and returns it without a trailing slash. The path must be absolute and in its plain
// form: no ".", no "..", no doubled slash and no NUL byte. Apart from symlinks, its text is then what the kernel
// resolves. Kinds: Invalid.
func Absolute(s string) (string, error) {
	switch {
	case s == "":
		return "", failure.Errorf(failure.Invalid, "the path is empty: an absolute path is needed")
	case len(s) > maxPath:
		return "", failure.Errorf(failure.Invalid, "path %q... is %d bytes long: at most %d are allowed", s[:32], len(s),
			maxPath)
	case s[0] != '/':
		return "", failure.Errorf(failure.Invalid, "path %q is not absolute: it must begin with a slash", s)
	case strings.ContainsRune(s, 0):
		return "", failure.Errorf(failure.Invalid, "path %q contains a NUL byte", s)
	}
	plain := s
	if len(s) > 1 {
		plain = strings.TrimSuffix(s, "/")
	}
	if path.Clean(plain) != plain || strings.Contains(s, "//") {
		return "", failure.Errorf(failure.Invalid,
			`path %q is not in its plain form: "." and ".." elements and doubled slashes are not allowed`, s)
	}
	return plain, nil
}

// Within reports whether path is root or lies below it, element by element: /mnt/disks2 is not within /mnt/disks. It
// cleans both first, looks only at the text, and resolves no symlinks.
func Within(root, p string) bool {
	root, p = path.Clean(root), path.Clean(p)
	if path.IsAbs(root) != path.IsAbs(p) {
		return false
	}
	switch root {
	case p, "/":
		return true
	case ".":
		return p != ".." && !strings.HasPrefix(p, "../")
	}
	return strings.HasPrefix(p, root+"/")
}
