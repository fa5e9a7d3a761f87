package initrd

import (
	"bytes"
	"fmt"
	"os"
)

// Write writes an archive that contains the program as /init, and the folders that it needs at first.
func Write(path, program string) error {
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, dir := range []string{"dev", "proc", "root"} {
		entry(&out, dir, 0o40755, nil)
	}
	entry(&out, "init", 0o100755, text)
	entry(&out, "TRAILER!!!", 0, nil)
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// entry writes an entry in the "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst): thirteen
// numbers of eight hexadecimal digits, then the name and the contents, both padded to four bytes.
func entry(out *bytes.Buffer, name string, mode int, text []byte) {
	out.WriteString("070701")
	inode, links, major, minor := 0, 1, 0, 0
	for _, n := range []int{inode, mode, 0, 0, links, 0, len(text), major, minor, 0, 0, len(name) + 1, 0} {
		fmt.Fprintf(out, "%08x", n)
	}
	out.WriteString(name + "\x00")
	pad(out)
	out.Write(text)
	pad(out)
}

func pad(out *bytes.Buffer) {
	for out.Len()%4 != 0 {
		out.WriteByte(0)
	}
}
