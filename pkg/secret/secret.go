package secret

import "strings"

// Hidden stands where a secret was.
const Hidden = "***stripped***"

// Named tells whether what bears this name is likely to be a secret: a password, token, key or the like.
// It errs on the side of hiding.
func Named(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"token", "secret", "pass", "cred", "key", "auth", "chap", "sas"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// Option renders a mount option, without its value when the option's name speaks of a secret.
func Option(option string) string {
	name, _, valued := strings.Cut(option, "=")
	if valued && Named(name) {
		return name + "=" + Hidden
	}
	return option
}

// Options renders mount options as mount(8) writes them.
func Options(options []string) string {
	shown := make([]string, len(options))
	for i, option := range options {
		shown[i] = Option(option)
	}
	return strings.Join(shown, ",")
}
