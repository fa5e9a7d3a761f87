package hostile

import "strings"

// values returns the hostile values. beside is a directory of precious files next to the driver's own.
func values(beside string) []string {
	return []string{
		"", ".", "..", "/", "//", "../beside/precious", "../../../../../../etc", "/etc/passwd", beside, beside + "/precious",
		beside + "/../beside/precious", beside + "/full", "a/b", "a\x00b", "\x00", "a\nb", "a,b", "ro,remount,bind", "-o",
		"--help", "$(touch x)",
		"`id`", "%s%n", "lv-", "lv-../../beside", strings.Repeat("x", 128), strings.Repeat("x", 129),
		strings.Repeat("x", 5000),
		strings.Repeat("../", 100), "v2:bogus", "\u202e", "ｅｖｉｌ", "CON", "ext4", "xfs", "tmpfs", "overlay", "-1",
		"99999999999999999999",
	}
}
