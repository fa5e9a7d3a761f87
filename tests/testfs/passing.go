package testfs

import (
	"os"
	"regexp"
	"strconv"
)

// Passing reports whether a sentence names a process that has a loop device open only briefly. losetup opens each
// device to find a free one. The tests of other packages, and their children from /proc/self/exe, open each one to find
// the device of a file.
func Passing(sentence string) bool {
	for _, process := range regexp.MustCompile(`process (\d+) \((losetup|exe|\S*\.test?)\)`).
		FindAllStringSubmatch(sentence, -1) {
		if process[1] != strconv.Itoa(os.Getpid()) {
			return true
		}
	}
	return false
}
