package export

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// volumesFile is the kernel client's list of mounted filesystems in this network namespace.
const volumesFile = "/proc/fs/nfsfs/volumes"

// filesystemOf names the server's filesystem of a directory; empty if the kernel does not tell it. The device number is
// not sufficient: each mount has its own, even if several are of one filesystem. Exports of one filesystem with
// separate quotas share no room, so filesystems of different size count as different.
func filesystemOf(dir int) string {
	var stat unix.Stat_t
	var room unix.Statfs_t
	if unix.Fstat(dir, &stat) != nil || unix.Fstatfs(dir, &room) != nil {
		return ""
	}
	list, err := os.Open(volumesFile)
	if err != nil {
		return ""
	}
	defer func() { _ = list.Close() }() // read only
	const most = 1 << 20                // bytes
	text, err := io.ReadAll(io.LimitReader(list, most))
	if err != nil {
		return ""
	}
	return filesystemIn(string(text), stat.Dev, int64(room.Blocks)*room.Frsize)
}

// filesystemIn returns the name of the filesystem of a mount, from its device number and size in bytes; empty if the
// list does not have it.
func filesystemIn(list string, device uint64, bytes int64) string {
	listed := listedAs(list, device)
	if listed == "" {
		return ""
	}
	return fmt.Sprintf("%s of %d bytes", listed, bytes)
}

// listedAs returns the server's address and its number of the filesystem, for the mount with a device number. A line of
// the list is "v4 c0a80001 801 0:45 <the filesystem> no". A server that numbers its filesystems does not use the number
// 0.
func listedAs(list string, device uint64) string {
	const server, number, filesystem, none = 1, 3, 4, "0:0"
	want := fmt.Sprintf("%d:%d", unix.Major(device), unix.Minor(device))
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > filesystem && fields[number] == want &&
			fields[filesystem] != none {
			return fields[server] + " " + fields[filesystem]
		}
	}
	return ""
}
