package backendtest

import "strings"

// oddNames returns names that are distinct, valid, and not usable as file names. They reveal a backend that trusts
// names.
func oddNames() []string {
	long := strings.Repeat("n", 127)
	return []string{
		"pvc-1", "PVC-1", "pvc-1 ", " pvc-1", "pvc", ".", "..", "../../etc", "/etc/passwd", "a/b", "a//b", `a\b`, "a%2fb",
		"with\nnewline", "with\ttab", "with\x01control", "a,b", "a=b", "$(id)", "`id`", "-rf", "--", "*", "%s%n", "'", `"`,
		"näme", "na\u0308me", "名前", "🦆", "\u202eright to left", long + "1", long + "2", strings.Repeat("é", 64),
	}
}

// oddHandles returns handles that no backend returned, similar to a known one.
func oddHandles(known string) []string {
	handles := []string{
		"", " ", ".", "..", "/", "../x", "../../etc/passwd", "/etc/passwd", "a/b", "\x00", "a\x00b", "\n", "-rf", "%2e%2e",
		"\xff\xfe",
		"missing", strings.Repeat("h", 10_000), strings.Repeat("../", 3_000),
		known + "/", known + "/.", "./" + known, "/" + known, known + "/../" + known, known + "\x00", known + "\n",
		known + " ", " " + known,
		known + "x", known[:len(known)-1], known + "," + known, "*",
	}
	for _, other := range []string{strings.ToUpper(known), strings.ToLower(known)} {
		if other != known {
			handles = append(handles, other)
		}
	}
	return handles
}
