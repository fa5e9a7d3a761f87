package method

import "fmt"

// Method says how the data of a volume are made unreadable.
type Method string

// The methods.
const (
	Discard    Method = "discard"    // the device drops all blocks, then all are read: what it kept is set to zero
	Zero       Method = "zero"       // every byte becomes zero
	Shred      Method = "shred"      // every byte becomes random, then zero
	Signatures Method = "signatures" // filesystems and partitions are no longer recognised; data stay readable
	None       Method = "none"       // nothing is changed
)

// Check refuses an unknown method.
func (m Method) Check() error {
	switch m {
	case Discard, Zero, Shred, Signatures, None:
		return nil
	}
	return fmt.Errorf("the wipe method is %q: use discard, zero, shred, signatures or none", m)
}

// Passes returns how many times each byte is written, or read to find what was not dropped.
func (m Method) Passes() int64 {
	switch m {
	case Shred, Discard:
		return 2
	case Zero:
		return 1
	default:
		return 0
	}
}

// Clean reports whether a device on which a probe found this type (filesystem.Found.Type) is in the state that the
// method leaves.
func (m Method) Clean(found string, unknownData string) bool {
	switch m {
	case None:
		return true
	case Signatures:
		return found == "" || found == unknownData
	default:
		return found == ""
	}
}
