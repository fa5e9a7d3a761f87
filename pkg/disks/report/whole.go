package report

import "strings"

// partition parts the identity of a disk from what tells its partitions from each other.
const partition = ",partition="

// PartIdentity is the identity of a partition of a disk.
func PartIdentity(disk, which string) string { return disk + partition + which }

// Whole returns the identity of the disk that a partition is on, by the identity of the partition. It is false of
// anything else.
func Whole(identity string) (disk string, isPart bool) {
	at := strings.LastIndex(identity, partition)
	if at < 0 {
		return "", false
	}
	return identity[:at], true
}
