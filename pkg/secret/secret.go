package secret

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden replaces a secret.
const Hidden = "***stripped***"

// Named reports whether a value with this name is likely to be a secret, such as a password, token or key. In doubt, it
// returns true.
func Named(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"token", "secret", "pass", "pwd", "cred", "key", "auth", "chap", "sas"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// Option renders a mount option or another value of a user, and hides everything after a name that suggests a secret:
// several options may be joined in one. A character that cannot be printed ends a name too. It also hides what follows
// the user in a URL such as https://user:password@host.
func Option(option string) string {
	for i, r := range option {
		ends := r == '=' || r == ':' || r == utf8.RuneError || !unicode.IsPrint(r)
		if ends && (Named(option[:i]) || isUser(option[:i], option[i:])) {
			return option[:i] + string(r) + Hidden
		}
	}
	return option
}

// isUser reports whether a text ends with the user of a URL, and the rest begins with the user's password.
func isUser(text, rest string) bool {
	begin := strings.LastIndex(text, "//")
	return begin >= 0 && !strings.Contains(text[begin+len("//"):], "/") && strings.HasPrefix(rest, ":") &&
		strings.Contains(rest, "@")
}

// Options renders mount options as mount(8) writes them.
func Options(options []string) string {
	shown := make([]string, len(options))
	for i, option := range options {
		shown[i] = Option(option)
	}
	return strings.Join(shown, ",")
}
