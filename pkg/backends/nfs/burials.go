package nfs

import (
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

const (
	// buriedMark is in the name of a record that somebody has just moved away to delete what it is of. Nobody else has
	// the name, so that the move replaces nothing: who was stopped before it may move another thing's record than he
	// meant. Versions of the driver without burials leave what has such a name in the trash alone.
	buriedMark = ".buried-"
	// endedMark is in the name of a record in the trash that is about to be removed.
	endedMark = ".ended-"
)

// buried is a record in the burials, or in the trash: its folder, and its name there.
type buried struct{ folder, name string }

// burialOf is a name for the record of the thing with the key, among the burials, that nobody has had.
func burialOf(key string) string {
	id, turn, _ := strings.Cut(key, "-")
	return id + buriedMark + turn + "-" + share.Random() + suffix
}

// buriedAs is the key of the thing that was to be deleted by who gave a record its name there, and the mark in that
// name, if it has one; the key is empty for what is no record of a thing.
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
