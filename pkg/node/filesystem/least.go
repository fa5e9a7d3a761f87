package filesystem

// Least is the size in bytes of the smallest device that Format makes the filesystem on: mkfs refuses a smaller one, or
// leaves out the journal. It is 0 for a type that Format does not make.
func Least(fsType string) int64 {
	m, _ := makerOf(fsType)
	return m.leastSize
}
