package testfs

import (
	"fmt"
	"os"
	"testing"
)

func TestPassing(t *testing.T) {
	for sentence, want := range map[string]bool{
		"it is in use: process 1 (losetup) has /dev/loop3 open":          true,
		"process 1 (cat) works in /x, process 2 (node.test) has it":      true,
		"process 1 (localvolume.tes) has it open":                        true, // The kernel truncates longer names.
		"it is in use: process 17047 (exe) has /dev/loop1 open":          true,
		"process 1 (sh) has /dev/loop3 open":                             false,
		"the loop device /dev/loop3 holds /tmp/node.test":                false,
		fmt.Sprintf("process %d (testfs.test) has it open", os.Getpid()): false,
	} {
		if Passing(sentence) != want {
			t.Errorf("%q: want %t", sentence, want)
		}
	}
}
