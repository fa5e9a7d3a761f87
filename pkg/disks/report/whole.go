package report

import "strings"

// partition separates the identity of a disk from that of the partition on it.
const partition = ",partition="

// PartIdentity returns the identity of a partition of a disk.
func PartIdentity(disk, which string) string { return disk + partition + which }

// Whole returns the identity of the disk of a partition, given the partition's identity. isPart is false for any other
// identity.
func Whole(identity string) (disk string, isPart bool) {
	at := strings.LastIndex(identity, partition)
	if at < 0 {
		return "", false
	}
	return identity[:at], true
}
