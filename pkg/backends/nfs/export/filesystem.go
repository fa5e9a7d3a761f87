package export

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// volumesFile is where the kernel's client lists what it has mounted in this network namespace.
const volumesFile = "/proc/fs/nfsfs/volumes"

// filesystemOf names the server's filesystem on which a directory is; empty where the kernel does not tell it. Each
// mount has a device number of its own, also where several are of one filesystem. Exports of one filesystem that have
// quotas of their own share no room: what differs in size is not the same.
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

// filesystemIn names the filesystem with so many bytes of the mount with a device number; empty for one that the list
// does not have.
func filesystemIn(list string, device uint64, bytes int64) string {
	listed := listedAs(list, device)
	if listed == "" {
		return ""
	}
	return fmt.Sprintf("%s of %d bytes", listed, bytes)
}

// listedAs is the server's address and its number of the filesystem, of the mount with a device number. A line of the
// list is "v4 c0a80001 801 0:45 <the filesystem> no". A server that numbers its filesystems has none of the number 0.
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
