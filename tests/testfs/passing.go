package testfs

import (
	"os"
	"regexp"
	"strconv"
)

// Passing reports whether a sentence names a process that has a loop device open for a moment only: losetup opens each
// to find a free one, and the tests of other packages and what they start from /proc/self/exe each to find the one that
// holds a file.
func Passing(sentence string) bool {
	for _, process := range regexp.MustCompile(`process (\d+) \((losetup|exe|\S*\.test?)\)`).
		FindAllStringSubmatch(sentence, -1) {
		if process[1] != strconv.Itoa(os.Getpid()) {
			return true
		}
	}
	return false
}
