package nfs

import (
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

const (
	// buriedMark is in the name of a record that was just moved away for the deletion of its item. The name is unique, so
	// the move replaces nothing: a controller that was stopped before the move may move another item's record.
	// Versions of the driver without burials leave files with such a name in the trash alone.
	buriedMark = ".buried-"
	// endedMark is in the name of a record in the trash that is about to be removed.
	endedMark = ".ended-"
)

// buried is a record in the burials, or in the trash: its folder, and its name there.
type buried struct{ folder, name string }

// burialOf returns a unique name among the burials for the record of the item with the key.
func burialOf(key string) string {
	id, turn, _ := strings.Cut(key, "-")
	return id + buriedMark + turn + "-" + share.Random() + suffix
}

// buriedAs returns the key of the item that was to be deleted under that name, and the mark in the name, if it has one.
// The key is empty for a file that is no record.
func buriedAs(name string) (key, mark string) {
	base, isRecord := strings.CutSuffix(name, suffix)
	if !isRecord {
		return "", ""
	}
	key = base
	if id, rest, ok := strings.Cut(base, buriedMark); ok {
		turn, _, _ := strings.Cut(rest, "-")
		key, mark = id+"-"+turn, buriedMark
	} else if ended, _, ok := strings.Cut(base, endedMark); ok {
		key, mark = ended, endedMark
	}
	if id, turn, _ := strings.Cut(key, "-"); !isHex(id, 32) || !isHex(turn, 16) {
		return "", ""
	}
	return key, mark
}
